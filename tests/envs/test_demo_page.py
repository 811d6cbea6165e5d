"""The demo page in a real browser: its games are trained while it draws them, and it finds the next
run by itself."""

import importlib.util
import shutil
import threading
import time

import pytest

from ludus.api import train
from ludus.external.foreign import ForeignBatch
from ludus.external.gate import Gate

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None or importlib.util.find_spec("playwright") is None,
    reason="no Chromium, or playwright is not installed",
)
ENVS = 32


@pytest.fixture(scope="module")
def page():
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as play:
        patch.setenv("LUDUS_TOKEN", "a-token-for-every-run")  # otherwise the next run has another
        gate = Gate.at("0")
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.port = gate.port
        page.goto(f"{gate.url('http')}&envs={ENVS}")
        yield page
        browser.close()
    for open_gate in list(Gate._open.values()):
        open_gate.close()


def text(page, name):
    return page.locator(f"#{name}").inner_text()


def wait_for(page, condition):
    """The page's events are only handled while playwright is called."""
    until = time.monotonic() + 120
    while not condition():
        page.wait_for_timeout(100)
        assert time.monotonic() < until, text(page, "status")


def test_its_games_are_learned_while_it_draws_them(page, tmp_path):
    """A paddle that moves at random catches about a third of the balls; a good one nearly all."""
    done = []

    def work():
        values = {
            "train.threads": 1,
            "ppo.rollout": 32,
            "eval.episodes": ENVS,
            "eval.greedy": False,
            "log.tensorboard": False,
            "eval.every_agent_steps": 12_000,
        }
        done.append(
            train(
                "remote:0",
                run=tmp_path / "run",
                quiet=True,
                envs=ENVS,
                total_agent_steps=12_000,
                **values,
            )
        )

    trainer = threading.Thread(target=work)
    trainer.start()
    wait_for(page, lambda: not trainer.is_alive())
    (run,) = done
    last = run.metrics()[-1]
    assert last["eval/self/return"] > 0.5  # three in four caught
    assert last["memory/client_mb"] > 1
    assert text(page, "status") == "connected" and int(text(page, "rate").removesuffix("%")) > 60
    assert int(text(page, "balls").replace(",", "")) > 12_000 // 12
    painted = page.evaluate(
        "[...document.querySelectorAll('canvas')].map((c) => c.getContext('2d').getImageData(0, 0, "
        "c.width, c.height).data.some((b) => b > 0))"
    )
    assert painted == [True] * 9  # eight games and the curve
    assert page.complaints == []


def test_it_finds_the_next_run(page):
    for gate in list(Gate._open.values()):
        gate.close()
    wait_for(page, lambda: "trying again" in text(page, "status"))
    gate = Gate.at(str(page.port))
    wait_for(page, lambda: gate.num_envs() == ENVS)
    batch = ForeignBatch(f"remote:{page.port}", 4)
    batch.step()
    assert batch["valid"].all() and text(page, "status") == "connected"

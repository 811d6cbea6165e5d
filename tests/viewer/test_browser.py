"""The pages in a real Chromium: what is on the screen and in the scene, not only that nothing
failed."""

import fcntl
import json
import os
import random
import shutil
import time

import pytest

from ludus.errors import LudusError
from ludus.export import pictures
from ludus.export.page import film_page
from tests.viewer.shelf import EVIL, SMALL, fake_run, serving
from tests.viewer.test_mutated import change_header, cut, flip_body

try:
    pictures.find_browser()
except LudusError as missing:
    if os.environ.get("CI"):
        raise
    pytest.skip(f"browser tests skipped: {missing}", allow_module_level=True)

SIZE = {"width": 600, "height": 400}  # small: every pixel is drawn by the CPU here


@pytest.fixture(scope="module")
def chromium():
    with pictures.browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def site(root):
    with serving(root) as (viewer, port):
        yield viewer, f"http://127.0.0.1:{port}/"


def new_page(chromium):
    page = chromium.new_context(viewport=SIZE).new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("dialog", lambda dialog: page.faults.append(f"dialog {dialog.message}"))
    page.set_default_timeout(60_000)
    return page


@pytest.fixture(scope="module")
def tab(chromium):
    return new_page(chromium)


@pytest.fixture
def page(tab):
    """The tab that most tests share, going from page to page as a person would. Errors in it fail
    the test."""
    tab.faults.clear()
    yield tab
    assert not tab.faults


@pytest.fixture
def fresh(chromium):
    """A tab of its own."""
    page = new_page(chromium)
    yield page
    faults = list(page.faults)
    page.context.close()
    assert not faults


def shelf(game):
    return f"#/replay/shelf/000000000007-bots-{game}-best.safetensors"


def open_player(page, address):
    page.goto(address)
    until(page, "window.ludusPlayer?.film && ludusPlayer.drawn > 0")


def until(page, condition):
    """Waits for a condition of the page. (Playwright's own way needs eval, which the page's policy
    forbids.)"""
    end = time.monotonic() + 60
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(30)


def state(page):
    return page.evaluate("ludusPlayer.state()")


def still(page, t):
    page.evaluate(
        "t => { ludusPlayer.setPlaying(false); ludusPlayer.seek(t); ludusPlayer.draw(); }", t
    )


PIXELS = """selector => {
  const from = document.querySelector(selector), to = document.createElement('canvas');
  to.width = 64; to.height = 40;
  const ctx = to.getContext('2d');
  ctx.drawImage(from, 0, 0, 64, 40);
  return [...ctx.getImageData(0, 0, 64, 40).data];
}"""


def colours(page, selector="canvas.scene"):
    """How many different colours a canvas shows, coarsely."""
    data = page.evaluate(PIXELS, selector)
    return {
        tuple(v // 24 for v in data[i : i + 3]) for i in range(0, len(data), 4) if data[i + 3] > 0
    }


# -- runs ------------------------------------------------------------------------------------------


def test_the_list_of_runs(page, site):
    page.goto(site[1])
    page.wait_for_selector("table.list tbody tr")
    row = page.locator("tr", has_text="learned")
    assert "finished" in row.inner_text() and "pursuit" in row.inner_text()
    assert row.locator(".verdict").inner_text() == "too little data"
    assert page.locator("tr", has=page.get_by_text(EVIL, exact=True)).count() == 1  # as text
    assert page.evaluate("document.querySelectorAll('#page img, #page script').length") == 0
    for name in ("learned", "shelf"):
        page.get_by_label(f"compare {name}").check()
    assert page.locator("a.accent").get_attribute("href").startswith("#/compare/")


def test_the_page_of_a_run(page, site):
    page.goto(site[1] + "#/run/learned")
    page.wait_for_selector(".chart canvas")
    page.wait_for_timeout(100)
    assert page.get_by_text("Too little data to judge: 4 row(s)").is_visible()
    titles = page.locator(".chart h4").all_inner_texts()
    assert {"Return per role", "Time by phase", "Reward of chaser by term, per episode"} <= set(
        titles
    )
    assert len(colours(page, ".chart canvas")) > 3  # curves were drawn
    assert page.locator(".replays a").count() >= 3
    page.get_by_text("The game as the simulator received it").click()
    assert page.get_by_role("cell", name="max_steps").is_visible()


def test_hostile_values_are_shown_as_text(page, site):
    page.goto(site[1] + f"#/run/{EVIL}")
    page.wait_for_selector("h1")
    page.get_by_text("Configuration").click()
    assert page.get_by_text("<script>window.hacked = 1</script>").is_visible()
    assert page.evaluate("window.hacked") is None


def test_two_runs_side_by_side(page, site):
    page.goto(site[1] + "#/compare/learned/shelf")
    page.wait_for_selector("table.pairs")
    assert page.locator("h1").inner_text() == "learned and shelf"
    assert page.locator("table.pairs tr", has_text="envs").count() == 1


def test_empty_and_wrong_addresses_say_what_to_do(fresh, tmp_path):
    with serving(tmp_path) as (_, port):
        fresh.goto(f"http://127.0.0.1:{port}/")
        fresh.wait_for_selector(".empty")
        assert "ludus train" in fresh.inner_text(".empty")
        fresh.goto(f"http://127.0.0.1:{port}/#/replay/nowhere/x")
        fresh.get_by_text("there is no run").wait_for()
        fresh.goto(f"http://127.0.0.1:{port}/#/nonsense")
        fresh.get_by_text("there is no page").wait_for()


# -- replays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [game for game in SMALL if game != "racing_lidar"])
def test_every_game_draws(page, site, game):
    open_player(page, site[1] + shelf(game))
    still(page, 20)
    facts = state(page)
    assert facts["view"] == game and facts["time"] == 20 and facts["calls"] > 0
    assert len(colours(page)) > 6
    if game not in ("pursuit", "brawl"):
        assert facts["triangles"] > 500


def test_an_env_of_another_library_shows_its_own_pictures(page, site):
    """CartPole's cart is black on white; scrubbing shows another picture. An env that draws nothing
    has charts instead."""
    page.goto(site[1] + "#/run/foreign")
    page.wait_for_selector(".replays a")
    assert not page.get_by_text("Watch it play").count()  # the viewer does not load such envs
    page.get_by_text("agent against self: best").click()
    until(page, "window.ludusPlayer?.film?.header.view === 'recorded' && ludusPlayer.drawn > 0")
    still(page, 0)
    before = page.evaluate(PIXELS, "canvas.scene")
    assert {(0, 0, 0), (10, 10, 10)} <= colours(page)  # both ends of 255 // 24
    assert len(page.evaluate("ludusPlayer.film.pictures")) == state(page)["last"] + 1
    page.locator("input.scrub").fill("9")
    until(page, "ludusPlayer.now.t === 9 && !ludusPlayer.dirty")
    assert page.evaluate(PIXELS, "canvas.scene") != before
    assert state(page)["picked"] == 0 and page.locator(".term .sum").inner_text() == "9"
    assert len(colours(page, "canvas.eyes")) > 3  # four lines of observations
    open_player(page, site[1] + "#/replay/foreign/000000000007-self-agent-worst.safetensors")
    until(page, "ludusPlayer.film.header.game.endsWith('counter') && ludusPlayer.drawn > 0")
    still(page, 5)
    assert len(colours(page)) > 3 and "There are no pictures" in page.inner_text(".side")


def test_scrubbing_shows_that_moment(page, site):
    open_player(page, site[1] + shelf("hide_and_seek"))
    still(page, 0)
    before = page.evaluate(PIXELS, "canvas.scene")
    slider = page.locator("input.scrub")
    slider.fill("30")
    until(page, "ludusPlayer.now.t === 30 && !ludusPlayer.dirty")
    place = page.evaluate("ludusPlayer.actor.place(1)")
    film = site[0].theatre.film("shelf", "000000000007-bots-hide_and_seek-best.safetensors")
    x, y, z = film.frames[30]["position"][1]
    assert (place["x"], place["z"]) == pytest.approx((x, z), abs=1e-4) and place[
        "y"
    ] == pytest.approx(y + 0.75, abs=1e-4)
    assert page.evaluate(PIXELS, "canvas.scene") != before
    page.keyboard.press("ArrowRight")
    until(page, "ludusPlayer.now.t === 31")
    page.keyboard.press("Home")
    page.keyboard.press("+")
    page.keyboard.press("Space")
    until(page, "ludusPlayer.now.t > 2")
    assert state(page)["speed"] == 2 and state(page)["playing"]
    page.keyboard.press("?")
    assert page.locator(".help").is_visible() and "pick an agent" in page.inner_text(".help")


def test_an_agent_is_picked_by_a_click(page, site):
    open_player(page, site[1] + shelf("mechs"))
    still(page, 25)
    at = page.evaluate("ludusPlayer.stage.project(ludusPlayer.actor.place(2))")
    box = page.locator("canvas.scene").bounding_box()
    page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])
    until(page, "ludusPlayer.picked === 2 && !ludusPlayer.dirty")
    film = site[0].theatre.film("shelf", "000000000007-bots-mechs-best.safetensors")
    earned = sum(
        frame["terms"][2, film.header["terms"].index("approach")] for frame in film.frames[1:26]
    )
    row = page.locator(".term", has_text="approach").locator(".sum").inner_text()
    assert float(row) == pytest.approx(earned * film.header["weights"]["approach"], rel=0.01)
    until(page, "ludusPlayer.film.seens[2]")
    until(page, "!ludusPlayer.dirty && ludusPlayer.panel.shown === 25")
    assert len(colours(page, "canvas.eyes")) > 1  # its map
    page.keyboard.press("c")
    assert state(page)["mode"] == "follow"
    page.keyboard.press("Escape")
    assert state(page)["picked"] is None


def test_a_policy_shows_its_thoughts(page, site):
    page.goto(site[1] + "#/run/learned")
    page.locator(".replays a").first.click()
    until(page, "window.ludusPlayer?.film?.header.view === 'pursuit' && ludusPlayer.drawn > 0")
    still(page, 5)
    page.evaluate("ludusPlayer.pick(0); ludusPlayer.draw()")
    value = page.evaluate("ludusPlayer.film.at('value', 5)[0]")
    shown = page.locator("section h4", has_text="expects").inner_text()
    assert float(shown.split("expects ")[1].split(" ")[0]) == pytest.approx(value, rel=0.01)
    assert "%" in page.locator(".action", has_text="go").inner_text()
    attention = page.locator("section", has_text="Attention over the opponent")
    assert attention.is_visible()
    assert colours(page, "canvas.attention")


def test_damaged_and_newer_replays_give_a_sentence(fresh, site, root):
    whole = (root / "shelf/replays/000000000007-bots-pursuit-best.safetensors").read_bytes()
    bad = fake_run(root.parent / "bad" / "bad", "pursuit")
    (bad / "replays").mkdir()
    rng = random.Random(1)
    for i in range(18):
        (bad / "replays" / f"{i}.safetensors").write_bytes(
            [change_header, flip_body, cut][i % 3](rng, whole)
        )
    newer = whole.replace(b'\\"version\\": 1,', b'\\"version\\": 2,')
    (bad / "replays" / "newer.safetensors").write_bytes(newer)
    with serving(bad.parent) as (_, port):
        fresh.goto(f"http://127.0.0.1:{port}/#/replay/bad/newer.safetensors")
        fresh.get_by_text("version 2, this Ludus reads version 1: update Ludus").wait_for()
        for i in range(18):
            fresh.goto(f"http://127.0.0.1:{port}/#/replay/bad/{i}.safetensors")
            fresh.wait_for_selector(".empty, .player")
            words = fresh.evaluate("document.querySelector('.empty')?.innerText ?? 'player'")
            assert words == "player" or len(words) > 40
            fresh.goto(f"http://127.0.0.1:{port}/#/games")
            fresh.wait_for_selector(".cards")


def test_without_webgl_the_page_says_what_to_do(fresh, site):
    fresh.add_init_script("""const get = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) { return /webgl/.test(kind) ? null : get.call(this, kind, ...rest); };""")
    fresh.goto(site[1] + shelf("mechs"))
    fresh.get_by_text("hardware acceleration").wait_for()
    open_player(fresh, site[1] + shelf("brawl"))  # 2D needs none


def test_200_scene_changes_leave_memory_flat(page, site):
    """Opens and closes replays of two 3D games in turn, as a person would by following links."""
    client = page.context.new_cdp_session(page)

    def heap():
        client.send("HeapProfiler.collectGarbage")
        return client.send("Runtime.getHeapUsage")["usedSize"] / 2**20

    page.set_viewport_size({"width": 300, "height": 240})
    page.goto(site[1])
    change = """async addresses => {
      for (const address of addresses) {
        const before = window.ludusPlayer;
        location.hash = address;
        while (window.ludusPlayer === before || !window.ludusPlayer.drawn) await new Promise(requestAnimationFrame);
      }
      return ludusPlayer.state();
    }"""
    pair = [shelf("hide_and_seek"), shelf("arena")]
    first = page.evaluate(change, pair * 10)
    low = heap()
    last = page.evaluate(change, pair * 90)
    assert last["geometries"] == first["geometries"] and last["textures"] == first["textures"]
    assert heap() - low < 8, "MB more after 180 further scenes"
    assert page.evaluate("document.querySelectorAll('canvas').length") < 12
    page.set_viewport_size(SIZE)


# -- live ------------------------------------------------------------------------------------------


def test_a_run_in_progress(fresh, root, tmp_path):
    """While somebody trains it: its state, new lines as they are written, and its newest policies
    playing."""
    shutil.copytree(root / "learned", tmp_path / "runs" / "live")
    path = tmp_path / "runs" / "live"
    log = path / "metrics.jsonl"
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[:-1]) + "\n")
    with open(path / "lock", "w") as lock, serving(tmp_path / "runs") as (_, port):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.goto(f"http://127.0.0.1:{port}/#/run/live")
        fresh.get_by_text("training", exact=True).wait_for()
        with open(log, "a") as file:
            file.write(lines[-1] + "\n")
        steps = f"{json.loads(lines[-1])['progress/agent_steps']:,} agent-steps"
        fresh.locator(".facts", has_text=steps).wait_for(timeout=15_000)
        fresh.get_by_text("Watch it live").click()
        until(fresh, "window.ludusPlayer?.film.last > 3")
        assert fresh.evaluate("ludusPlayer.film.header.thinks").startswith("the policy of step")
        assert fresh.evaluate("Number.isFinite(ludusPlayer.film.at('value', 2)[0])")


# key, and what of the state it moves
KEYS = {
    "pursuit": ("w", "film.at('position', film.last).slice(0, 2)"),
    "hide_and_seek": ("w", "film.at('position', film.last).slice(0, 3)"),
    "arena": ("d", "[film.at('column', film.last)[0], film.at('facing', film.last)[0]]"),
    "brawl": ("ArrowLeft", "film.at('motion', film.last).slice(0, 1)"),
    "racing": ("w", "film.at('car', film.last).slice(3, 4)"),
    "mechs": ("w", "film.at('position', film.last).slice(0, 3)"),
}
TURNED = {
    "pursuit": "a",
    "hide_and_seek": "ArrowRight",
    "arena": "w",
    "brawl": "ArrowRight",
    "racing": "a",
    "mechs": "ArrowLeft",
}


@pytest.mark.parametrize("game", KEYS)
def test_a_match_is_played_by_keyboard(page, site, game):
    """A person's keys move their agent, and the match goes to its end and on to the next."""
    key, moved = KEYS[game]
    values = {**SMALL[game], "max_steps": 40, **({"stagger_least": 40} if game == "arena" else {})}
    agent = 1 if game == "hide_and_seek" else 0
    query = "&".join(
        [f"game={game}", f"take={agent}", *(f"value={n}={v}" for n, v in values.items())]
    )
    open_player(page, f"{site[1]}#/watch?{query}")
    moved = moved.replace("slice(0, 3)", "slice(3, 6)") if agent else moved
    look = f"(() => {{ const {{film}} = ludusPlayer; return [...{moved}]; }})()"
    facts = state(page)
    assert (
        facts["taken"] == agent and page.evaluate("ludusPlayer.film.header.players")[agent] == "you"
    )
    before = page.evaluate(look)
    page.keyboard.down(key)
    until(
        page, f"JSON.stringify({look}) !== {json.dumps(json.dumps(before, separators=(',', ':')))}"
    )
    page.keyboard.up(key)
    page.evaluate("ludusPlayer.setSpeed(16); window.firstFilm = ludusPlayer.film")
    page.keyboard.down(TURNED[game])
    until(page, "ludusPlayer.film !== firstFilm")
    assert page.evaluate("firstFilm.over") and page.evaluate("firstFilm.last") >= 5
    assert state(page)["taken"] == agent  # still in the next match
    page.keyboard.up(TURNED[game])
    page.keyboard.press("Escape")
    assert state(page)["taken"] is None


def test_a_replay_is_taken_over(page, site):
    open_player(page, site[1] + shelf("pursuit"))
    still(page, 12)
    page.evaluate("ludusPlayer.pick(0)")
    page.keyboard.press("p")
    until(page, "window.ludusPlayer?.taken === 0 && ludusPlayer.options.live")
    film = site[0].theatre.film("shelf", "000000000007-bots-pursuit-best.safetensors")
    start = page.evaluate("[...ludusPlayer.film.at('position', 0)]")
    assert start == pytest.approx(film.frames[12]["position"].ravel().tolist(), abs=1e-5)


def test_clocks_of_an_episode_that_is_taken_over_go_on(page, site):
    """Seekers are frozen for 4 of 40 steps: at step 30 they seek, with 10 steps left."""
    open_player(page, site[1] + shelf("hide_and_seek"))
    still(page, 30)
    page.evaluate("ludusPlayer.pick(1)")
    page.keyboard.press("p")
    until(
        page, "window.ludusPlayer?.taken === 1 && ludusPlayer.options.live && ludusPlayer.drawn > 0"
    )
    still(page, 0)
    said = page.inner_text(".hud")
    assert (
        "seeking" in said
        and page.locator(".hud div", has_text="steps left").inner_text().split()[-1] == "10"
    )
    assert page.inner_text(".clock").startswith("30 / ")


# -- from disk -------------------------------------------------------------------------------------


def test_an_exported_file_opens_without_a_server(fresh, site, tmp_path):
    viewer, _ = site
    path = tmp_path / "film.html"
    path.write_text(
        film_page(
            viewer.theatre.film("shelf", "000000000007-bots-hide_and_seek-best.safetensors"),
            viewer.pages,
            "<b>title",
        )
    )
    fresh.route("http://**", lambda route: route.abort())
    asked = []
    fresh.on("request", lambda request: asked.append(request.url[:5]))
    open_player(fresh, path.as_uri())
    still(fresh, 15)
    assert state(fresh)["last"] == 40 and len(colours(fresh)) > 6
    fresh.evaluate("ludusPlayer.pick(1)")
    assert fresh.evaluate("ludusPlayer.film.seen('rays', 1, 15).shape") == [64, 2]
    assert fresh.title() == "<b>title" and set(asked) <= {"file:", "data:", "blob:"}

"""train, resume, fork, eval, recipes and bench train from the command line."""

import json
import re
import subprocess
import sys

import pytest

from ludus.runs.run import Run
from tests.commands.test_cli import call

TINY = [
    "--envs",
    "8",
    "--train.threads",
    "1",
    "--train.total-agent-steps",
    "2000",
    "--ppo.rollout",
    "16",
    "--ppo.minibatches",
    "1",
    "--policy.hidden",
    "8",
    "--eval.episodes",
    "2",
    "--eval.against",
    "self",
    "--game.max-steps",
    "20",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def run(folder):
    path = folder / "run"
    code = "from ludus.cli import main; main()"
    arguments = [
        "train",
        "pursuit",
        "--run",
        str(path),
        *TINY,
        "--ppo.roles.runner.entropy",
        "0.02",
        "--game.reward.catch",
        "4",
    ]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "agent-steps" in done.stderr and "report.html" in done.stdout
    (folder / "said").write_text(done.stdout)
    return path


def test_the_end_of_a_run_says_one_headline(run, folder, capsys):
    said = (folder / "said").read_text().splitlines()
    assert re.fullmatch(
        r"finished: [\d,]+ agent-steps in \d+:\d\d \([\d,]+ per second\)", said[0]
    ), said
    assert re.fullmatch(r"catch_rate: \d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\], 2 episodes", said[1]), (
        said
    )
    assert (
        said[2].startswith("best checkpoint: ")
        and said[2].endswith(f"{run}@best")
        and said[3].startswith("doctor: ")
    )
    assert [line.split()[0] for line in said[-5:]] == [
        "report",
        "look",
        "measure",
        "go",
        "all",
    ] and len(said) <= 16
    assert not any("survival" in line for line in said)
    from ludus.commands.summary import report

    report(Run(run), as_json=False, full=True)
    assert "survival" in capsys.readouterr().out
    report(Run(run), as_json=True, full=False)
    result = json.loads(capsys.readouterr().out)
    assert result["state"] == "finished" and result["headline"]["metric"] == "eval/self/catch_rate"
    assert result["headline"]["value"] == result["evaluation"]["eval/self/catch_rate"]
    page = (run / "report.html").read_text()
    assert "<p>finished: " in page and "<b>catch_rate: " in page


def test_train_wrote_what_was_asked(run):
    data = json.loads((run / "config.json").read_text())
    assert (
        data["values"]["ppo.roles.runner.entropy"] == 0.02
        and data["origins"]["ppo.roles.runner.entropy"] == "command line"
    )
    assert data["values"]["game.reward.catch"] == 4 and data["origins"]["ppo.gamma"] == "default"
    assert json.loads((run / "game.json").read_text())["rewards"]["catch"] == 4.0


def test_eval_json(capsys, run):
    status, out, _ = call(
        capsys, "eval", str(run), "--against", "bot:flee", "--episodes", "8", "--json"
    )
    result = json.loads(out)
    assert status == 0 and result["episodes"] == 8 and result["against"] == "bot:flee"
    assert set(result["metrics"]["catch_rate"]) == {"mean", "low", "high"}


def test_eval_on_another_preset_and_not_on_another_game(capsys, run):
    status, out, _ = call(capsys, "eval", str(run), "--on", "pursuit:easy", "--episodes", "4")
    assert status == 0 and "catch_rate" in out
    status, _, err = call(capsys, "eval", str(run), "--on", "gym:CartPole-v1", "--episodes", "4")
    assert status == 2 and "differ in their observation" in err


def test_resume_and_fork(capsys, run, folder):
    status, out, _ = call(capsys, "resume", str(run), "--train.total-agent-steps", "3000", "--json")
    assert status == 0 and json.loads(out)["agent_steps"] >= 3000
    status, _, err = call(capsys, "resume", str(run), "--ppo.gamma", "0.9")
    assert status == 2 and "ludus fork" in err
    status, out, _ = call(
        capsys,
        "fork",
        str(run),
        "--run",
        str(folder / "forked"),
        "--ppo.gamma",
        "0.9",
        "--train.total-agent-steps",
        "4000",
        "--json",
    )
    assert (
        status == 0
        and json.loads((folder / "forked/config.json").read_text())["values"]["ppo.gamma"] == 0.9
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train"], "needs a recipe"),
        (["train", "pursiut"], "did you mean 'pursuit'"),
        (["train", "pursuit:hard"], "no preset 'hard'"),
        (
            ["train", "tests.sim.games:PURSUIT"],
            "Config: write one that returns Config(game='tests.sim.games:PURSUIT')",
        ),
        (["train", "gym:Nothing-v0"], "cannot be made"),
        (["train", "pursuit", "--ppo.minibatches", "7"], "4096 rows does not divide into 7"),
        (["train", "pursuit", "--ppo.gama", "0.9"], "--ppo.gamma"),
        (["train", "pursuit", "--preset", "fsat"], "did you mean 'fast'"),
        (["train", "pursuit", "--device", "cuda"], "no CUDA GPU"),
        (["train", "pursuit", "--game.speed", "9"], "speed=9.0 is outside"),
        (["eval", "runs/nothing-here"], "no run at"),
        (["resume", "runs/nothing-here"], "no run at"),
        (["fork"], "needs a run"),
        (["completion", "fish"], "bash and zsh"),
        (
            [
                "bench",
                "train",
                "--recipe",
                "pursuit",
                "--against",
                "rllib",
                "--seconds",
                "0.1",
                "--train.threads",
                "1",
            ],
            "there is sb3",
        ),
    ],
    ids=" ".join,
)
def test_impossible_requests(capsys, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = call(capsys, *arguments)
    assert status == 2 and words in " ".join(err.split()) and "Traceback" not in err
    assert not list(tmp_path.iterdir()), "something was written"


def test_switches_take_true_or_false(capsys, tmp_path):
    arguments = [
        "train",
        "pursuit",
        "--run",
        str(tmp_path / "r"),
        *TINY,
        "--policy.separate-value",
        "False",
        "--log.tensorboard",
        "False",
        "--json",
    ]
    status, out, _ = call(capsys, *arguments)
    assert status == 0 and json.loads(out)["agent_steps"] >= 2000
    assert (
        json.loads((tmp_path / "r/config.json").read_text())["values"]["policy.separate_value"]
        is False
    )


def test_recipes(capsys):
    _, out, _ = call(capsys, "recipes")
    assert "pursuit" in out and "hide_and_seek" in out
    assert json.loads(call(capsys, "recipes", "--json")[1])["recipes"]["pursuit"]["envs"] == 128


def test_bench_train_json(capsys):
    arguments = [
        "bench",
        "train",
        "--recipe",
        "pursuit",
        "--seconds",
        "0.2",
        "--envs",
        "8",
        "--ppo.minibatches",
        "1",
        "--train.threads",
        "1",
        "--json",
    ]
    status, out, _ = call(capsys, *arguments)
    result = json.loads(out)
    assert (
        status == 0
        and result["bound"]["share"] > 0
        and abs(sum(result["phases"].values()) - 1) < 1e-6
    )
    assert set(result) >= {
        "recipe",
        "device",
        "dtype",
        "agent_steps_per_s",
        "phases",
        "bound",
        "peers",
        "ratio",
    }


def test_completion_is_valid_bash(capsys):
    _, out, _ = call(capsys, "completion", "bash")
    assert subprocess.run(["bash", "-n"], input=out, text=True).returncode == 0
    script = out + '\nCOMP_WORDS=(ludus train pu); COMP_CWORD=2; _ludus; echo "${COMPREPLY[@]}"'
    assert (
        subprocess.run(["bash"], input=script, capture_output=True, text=True).stdout.strip()
        == "pursuit"
    )


def test_help_loads_no_torch():
    code = (
        "import sys\nfrom ludus.cli import main\ntry:\n    main(['train', 'pursuit', "
        "'--help'])\nexcept SystemExit:\n    pass\n"
        "print('torch' in sys.modules, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        done.stdout.splitlines()[-1] == "False False"
        and "--ppo.roles.runner.entropy" in done.stdout
    )


def test_own_recipe_by_import_path(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from ludus.recipes.pursuit import pursuit\n\ndef quick():\n    config = pursuit()\n    "
        "config.train.total_agent_steps = 20_000\n"
        "    config.train.threads = 1\n    config.eval.episodes = 2\n    return config\n"
    )
    monkeypatch.chdir(tmp_path)
    status, out, _ = call(capsys, "train", "mine:quick", "--run", "r", "--json")
    assert status == 0 and json.loads(out)["agent_steps"] >= 20_000

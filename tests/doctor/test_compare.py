"""doctor compare on run folders with known differences."""

import json

import numpy as np
import pytest

from ludus.cli import main
from ludus.doctor.compare import Difference, compare, setting_differences, suspicion
from ludus.errors import LudusError

VALUES = {
    "game": "x",
    "seed": 0,
    "ppo.gamma": 0.99,
    "ppo.learning_rate": 1e-3,
    "ppo.epochs": 4,
    "log.episodes": 10,
}


def write(
    path,
    *,
    changes=None,
    origins=None,
    returns=None,
    versions=None,
    shares=None,
    speed=1000.0,
    seed=0,
):
    """A run of 40 rows; its return is 10 with a little noise unless given."""
    path.mkdir(parents=True)
    values = {**VALUES, "seed": seed, **(changes or {})}
    config = {"values": values, "origins": origins or {}, "versions": versions or {"torch": "2.9"}}
    (path / "config.json").write_text(json.dumps(config))
    noise = np.random.default_rng(seed).normal(size=40)
    level = np.full(40, 10.0) if returns is None else np.asarray(returns, float)
    rows = [
        {
            "progress/agent_steps": 100 * (i + 1),
            "progress/seconds": 2.0 * (i + 1),
            "episode/agent/return": level[i] + noise[i],
            "speed/agent_steps_per_s": speed,
            **{f"speed/share/{n}": v for n, v in (shares or {"learn": 0.5, "act": 0.5}).items()},
        }
        for i in range(40)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_settings_with_their_origin_bookkeeping_apart(tmp_path):
    a = write(tmp_path / "a", origins={"ppo.learning_rate": "recipe"})
    b = write(
        tmp_path / "b",
        changes={"ppo.learning_rate": 0.1, "ppo.epochs": 5, "log.episodes": 20},
        seed=3,
        origins={"ppo.learning_rate": "command line"},
    )
    c = compare(a, b)
    assert [d.key for d in c.settings][:2] == ["ppo.learning_rate", "ppo.epochs"]
    assert c.settings[0].origin == ("recipe", "command line") and (
        c.settings[0].a,
        c.settings[0].b,
    ) == (1e-3, 0.1)
    # neither seed nor log
    assert [d.key for _, d in c.suspects] == ["ppo.learning_rate", "ppo.epochs"]


def test_where_curves_part_and_by_how_much(tmp_path):
    """Alike for 2,000 of 4,000 steps, then one falls from 10 to 0: ten standard deviations of a
    row."""
    a = write(tmp_path / "a")
    b = write(tmp_path / "b", returns=np.where(np.arange(40) < 20, 10.0, 0.0), seed=1)
    (parting,) = compare(a, b).partings
    assert parting.curve == "episode/agent/return" and parting.step == 2000
    assert (
        parting.a == pytest.approx(10, abs=1.5)
        and parting.b == pytest.approx(0, abs=1.5)
        and parting.errors < -3
    )
    assert parting.seconds == (40.0, 40.0)


def test_curves_that_differ_by_noise_do_not_part(tmp_path):
    for seed in range(1, 8):
        assert (
            compare(
                write(tmp_path / f"a{seed}", seed=seed),
                write(tmp_path / f"b{seed}", seed=seed + 50),
            ).partings
            == []
        )


def test_several_seeds_are_the_noise(tmp_path):
    """Seeds differ by far more than rows do: what parts two single runs is nothing between folders
    of them."""
    for side, levels in (("a", (4.0, 10.0, 16.0)), ("b", (2.0, 8.0, 14.0))):
        for i, level in enumerate(levels):
            write(tmp_path / side / str(i), returns=np.full(40, level), seed=i)
    assert compare(tmp_path / "a" / "0", tmp_path / "b" / "2").partings[0].errors > 5
    assert compare(tmp_path / "a", tmp_path / "b").partings == []
    for i in range(3):
        write(tmp_path / "c" / str(i), returns=np.full(40, 60.0 + i), seed=i)
    (parting,) = compare(tmp_path / "a", tmp_path / "c").partings
    assert parting.seeds == (3, 3) and parting.errors > 5


def test_versions_phases_and_the_game(tmp_path):
    """100 s per million steps against 200 s: learning takes 50 and 150 of them."""
    a = write(tmp_path / "a", speed=10_000.0)
    b = write(
        tmp_path / "b",
        speed=5_000.0,
        shares={"learn": 0.75, "act": 0.25},
        versions={"torch": "2.10"},
    )
    c = compare(
        a, b, [{"key": "reward.catch", "a": 10, "b": 0, "text": "catch no longer rewarded"}]
    )
    assert [(d.key, d.a, d.b) for d in c.versions] == [("torch", "2.9", "2.10")]
    assert [(d.key, d.a, d.b) for d in c.phases] == [
        ("learn", 50.0, 150.0),
        ("speed", 10_000, 5_000),
    ]
    assert c.suspects[0][1].key == "game.reward.catch"


def test_a_large_change_is_more_suspect_than_a_small_one():
    large, small = (
        suspicion(Difference("ppo.learning_rate", 1e-3, b, "setting")) for b in (0.1, 1.1e-3)
    )
    derived = suspicion(
        Difference("ppo.learning_rate", 1e-3, 0.1, "setting", ("derived", "derived"))
    )
    assert large == pytest.approx(0.9) and small < 0.55 and derived == pytest.approx(0.45)
    assert suspicion(Difference("policy.hidden", [64], [32], "setting")) < small


def test_the_command(tmp_path, capsys):
    a = write(tmp_path / "a")
    b = write(
        tmp_path / "b",
        changes={"ppo.learning_rate": 0.1},
        returns=np.linspace(10, -10, 40),
        seed=1,
    )
    for extra in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["doctor", "compare", str(a), str(b), *extra])
        assert ended.value.code == 0
        out = capsys.readouterr().out
    told = json.loads(out)
    assert (
        told["suspects"][0]["key"] == "ppo.learning_rate"
        and told["curves"][0]["curve"] == "episode/agent/return"
    )
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "compare", str(a), str(tmp_path / "nowhere")])
    assert ended.value.code == 2 and "there is no run" in capsys.readouterr().err


def test_what_is_broken_or_missing(tmp_path):
    a, b = write(tmp_path / "a"), write(tmp_path / "b")
    (b / "metrics.jsonl").write_text((b / "metrics.jsonl").read_text()[:-30])
    assert any("cut off" in note for note in compare(a, b).notes)
    (b / "metrics.jsonl").unlink()
    assert any("metrics.jsonl is missing" in note for note in compare(a, b).notes)
    (b / "config.json").write_text('{"values": ')
    with pytest.raises(LudusError, match="cannot be read as the settings"):
        compare(a, b)


PPO = {"algorithm": "ppo", "policy.network": "standard", "ppo.gamma": 0.99, "ppo.clip": 0.2}
OTHER = {
    "algorithm": "my_lab.learners:ActorCritic",
    "policy.network": "strategy",
    "policy.strategy.width": 8,
    "actor_critic.gamma": 0.9,
    "actor_critic.steps": 5,
}


def test_settings_of_two_algorithms_belong_to_that_one_difference():
    """Those that both have are told beside it; what only one has is no difference by itself."""
    found = setting_differences({"values": PPO}, {"values": OTHER})
    assert [(d.key, d.a, d.b, d.kind) for d in found] == [
        ("algorithm", "ppo", "my_lab.learners:ActorCritic", "setting"),
        ("policy.network", "standard", "strategy", "setting"),
        ("ppo.gamma, actor_critic.gamma", 0.99, 0.9, "of a component"),
    ]
    wider = {**OTHER, "policy.strategy.width": 16, "actor_critic.steps": 9}
    same = setting_differences({"values": OTHER}, {"values": wider})
    assert [d.key for d in same] == ["policy.strategy.width", "actor_critic.steps"]


def test_curves_of_different_games_are_not_compared(tmp_path, capsys):
    a, b = (
        write(tmp_path / "a"),
        write(tmp_path / "b", changes={"game": "y", "ppo.gamma": 0.5}, returns=np.full(40, 90.0)),
    )
    assert compare(a, b).partings
    assert not compare(a, b, [{"key": "game", "a": "x", "b": "y", "text": "another game"}]).partings
    for path, name in ((a, "x"), (b, "y")):
        (path / "game.json").write_text(
            json.dumps({"game": name, "sizes": {}, "params": {}, "rewards": {}})
        )
    for command, code, words in (
        ("compare", 0, "not compared: these are different games"),
        ("bisect", 2, "are runs of different games"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["doctor", command, str(a), str(b)])
        told = capsys.readouterr()
        assert ended.value.code == code and words in told.out + told.err
    (b / "game.json").write_text("[]")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "compare", str(a), str(b)])
    assert (
        ended.value.code == 2 and "cannot be read as the game of a run" in capsys.readouterr().err
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [1, 2])
def test_curves_of_a_row_or_two_have_no_noise_to_part_from(tmp_path, rows):
    a, b = write(tmp_path / "a"), write(tmp_path / "b", returns=np.full(40, 90.0))
    (b / "metrics.jsonl").write_text(
        "".join((b / "metrics.jsonl").read_text().splitlines(keepends=True)[:rows])
    )
    assert compare(a, b).partings == []

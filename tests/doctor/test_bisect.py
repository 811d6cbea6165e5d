"""The search of bisect with launchers whose answers are known, what it keeps on disk, and the
command on real runs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ludus.cli import main
from ludus.doctor.bisect import Bisect, Measured, Trial
from ludus.doctor.log import Curve, Log
from ludus.doctor.trials import Trials, folder_of, levels, write_result
from ludus.errors import LudusError

KEYS = ["a", "b", "c", "d", "e"]


class Game:
    """Ten points where nothing is wrong and none where `sick` says so, with noise that depends on
    the trial alone."""

    def __init__(self, sick, noise=0.0, impossible=lambda s: False, stops=lambda s: False):
        self.sick, self.noise, self.impossible, self.stops = sick, noise, impossible, stops
        self.played: list[Trial] = []

    def __call__(self, trials):
        self.played += trials
        return [self.play(t) for t in trials]

    def play(self, trial):
        if self.impossible(trial.subset):
            return Measured(None)
        if self.stops(trial.subset):
            return Measured(None, 10, 0.1, "not finite")
        rng = np.random.default_rng([trial.seed, *sorted(map(ord, trial.subset))])
        value = (0.0 if self.sick(trial.subset) else 10.0) + self.noise * rng.normal()
        return Measured(value, agent_steps=100, seconds=1.5)


def found(game, keys=KEYS, seeds=3, jobs=1):
    answer = Bisect(keys, range(seeds), game, jobs).search()
    return [set(c.keys) for c in answer.causes], answer


@pytest.mark.parametrize("cause", KEYS)
def test_a_single_cause_is_found_with_few_runs(cause):
    sets, answer = found(Game(lambda s: cause in s))
    assert sets == [{cause}] and answer.causes[0].certainty == pytest.approx(0.95)
    assert answer.causes[0].verdict.failed == 3 and answer.runs <= 6 + 7 + 2
    assert answer.agent_steps == 100 * answer.runs and answer.seconds == pytest.approx(
        1.5 * answer.runs
    )


def test_the_likeliest_suspect_is_tried_first():
    """Six runs tell good from bad. Then the first two of five, the first alone, the other four; two
    more seeds of the culprit."""
    assert found(Game(lambda s: "a" in s))[1].runs == 6 + 3 + 2


@pytest.mark.parametrize("pair", [("a", "b"), ("a", "e"), ("c", "d"), ("b", "e")])
def test_two_causes_that_only_fail_together_are_both_named(pair):
    sets, answer = found(Game(lambda s: set(pair) <= s))
    assert sets == [set(pair)]
    assert all(not v.fails and v.failed == 0 for v in answer.causes[0].alone.values()) and set(
        answer.causes[0].alone
    ) == set(pair)


def test_three_of_ten_together():
    keys = [chr(97 + i) for i in range(10)]
    assert found(Game(lambda s: {"b", "f", "j"} <= s), keys)[0] == [{"b", "f", "j"}]


def test_two_independent_causes_are_found_one_after_the_other():
    sets, _ = found(Game(lambda s: "b" in s or {"d", "e"} <= s))
    assert sorted(map(sorted, sets)) == [["b"], ["d", "e"]]


def test_noise_costs_seeds_and_not_the_answer():
    """The gap is ten; noise of two is decided by one seed, noise of six needs more of them."""
    quiet, loud = Game(lambda s: "c" in s, noise=1.0), Game(lambda s: "c" in s, noise=6.0)
    assert found(quiet, seeds=3)[0] == [{"c"}]
    right = sum(
        found(Game(lambda s: "c" in s, noise=6.0), keys, seeds=12)[0] == [{"c"}]
        for keys in (KEYS, KEYS[::-1], ["c", *"abde"])
    )
    assert right == 3
    found(loud, seeds=12)
    per_subset = {
        s: sum(t.subset == s for t in loud.played) for s in {t.subset for t in loud.played}
    }
    assert max(per_subset[s] for s in per_subset if 0 < len(s) < 5) > 1
    once = {t.subset for t in quiet.played} - {frozenset("c"), frozenset(), frozenset(KEYS)}
    assert all(sum(t.subset == s for t in quiet.played) == 1 for s in once)


def test_one_unlucky_seed_accuses_nobody():
    """With "a" the first seed fails by bad luck. What is accused is tried with all seeds, and
    acquitted: the cause is "e"."""

    def play(trials):
        return [
            Measured(0.0 if "e" in t.subset or ("a" in t.subset and t.seed == 0) else 10.0)
            for t in trials
        ]

    answer = Bisect(KEYS, range(3), play).search()
    assert [c.keys for c in answer.causes] == [("e",)] and not answer.tried[frozenset("a")].fails


def test_certainty_falls_with_noise():
    sure, unsure = (
        found(Game(lambda s: "c" in s, noise=n), seeds=12)[1].causes[0].certainty
        for n in (0.5, 8.0)
    )
    assert 0.5 < unsure < sure == pytest.approx(1 - 1 / math.comb(24, 12))


def test_what_cannot_be_told_apart_is_said():
    with pytest.raises(LudusError, match="standard errors apart over 3 seeds"):
        found(Game(lambda s: False, noise=1.0))
    with pytest.raises(LudusError, match="nothing to bisect"):
        Bisect([], [0], Game(lambda s: True))


def test_settings_that_do_not_go_together_explain_nothing():
    """b cannot be run without a; c is the cause."""
    sets, answer = found(Game(lambda s: "c" in s, impossible=lambda s: "b" in s and "a" not in s))
    assert sets == [{"c"}] and all(v.possible or not v.fails for v in answer.tried.values())


def test_runs_that_break_off_have_failed():
    sets, answer = found(Game(lambda s: False, stops=lambda s: "d" in s))
    assert sets == [{"d"}] and answer.causes[0].verdict.failed == answer.causes[0].verdict.seeds
    assert all(math.isnan(v) for v in answer.bad)


def test_jobs_are_handed_over_together():
    sizes = []
    game = Game(lambda s: "c" in s, noise=6.0)

    def measure(trials):
        sizes.append(len(trials))
        return game(trials)

    Bisect(KEYS, range(12), measure, jobs=4).search()
    assert sizes[0] == 24 and sizes[1] == 4


# -- on disk ---------------------------------------------------------------------------------------


def launcher(root, game, limit=10**9):
    """Plays at most `limit` trials, then is interrupted, as by Ctrl-C."""
    played = []

    def launch(trials):
        for trial, folder in trials:
            if len(played) == limit:
                raise KeyboardInterrupt
            played.append(trial)
            folder.mkdir(parents=True, exist_ok=True)
            m = game.play(trial)
            write_result(
                folder,
                {
                    "levels": {"x": m.value},
                    "agent_steps": m.agent_steps,
                    "seconds": m.seconds,
                    "stopped": m.stopped,
                },
            )

    return launch, played


def test_interrupted_it_goes_on_where_it_was(tmp_path):
    game = Game(lambda s: {"b", "d"} <= s)
    whole, played = launcher(tmp_path / "whole", game)
    expected = Bisect(KEYS, range(3), Trials(tmp_path / "whole", "x", whole)).search()
    total = []
    for _ in range(100):
        launch, played_now = launcher(tmp_path / "parts", game, limit=2)
        try:
            answer = Bisect(KEYS, range(3), Trials(tmp_path / "parts", "x", launch)).search()
            total += played_now
            break
        except KeyboardInterrupt:
            total += played_now
    assert total == played and len(set(total)) == len(total)
    assert [c.keys for c in answer.causes] == [
        c.keys for c in expected.causes
    ] and answer.runs == expected.runs
    launch, again = launcher(tmp_path / "parts", game)
    Bisect(KEYS, range(3), Trials(tmp_path / "parts", "x", launch)).search()
    assert again == []


def test_a_cut_off_result_is_made_again(tmp_path):
    launch, played = launcher(tmp_path, Game(lambda s: "a" in s))
    trial = Trial(frozenset("a"), 0)
    folder_of(tmp_path, trial).mkdir(parents=True)
    (folder_of(tmp_path, trial) / "result.json").write_text('{"levels": {"x"')
    assert Trials(tmp_path, "x", launch)([trial])[0].value == 0.0 and played == [trial]
    assert folder_of(tmp_path, Trial(frozenset("ab"), 1)) == folder_of(
        tmp_path, Trial(frozenset("ba"), 1)
    )


def test_levels_are_means_over_the_last_fifth():
    steps = np.arange(10, 110, 10.0)
    log = Log(
        "x", {"r": Curve("r", steps, np.arange(10.0)), "late": Curve("late", steps[:3], np.ones(3))}
    )
    assert levels(log) == {"r": pytest.approx((7 + 8 + 9) / 3)}


# -- the command -----------------------------------------------------------------------------------


def write_run(path: Path, values, returns):
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({"values": values, "origins": {}, "versions": {}}))
    rows = [
        {"progress/agent_steps": 100 * (i + 1), "progress/seconds": i, "episode/agent/return": r}
        for i, r in enumerate(returns)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def command(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "bisect", *map(str, arguments)])
    out = capsys.readouterr()
    return ended.value.code, out.out, out.err


def test_what_cannot_be_bisected_is_refused(tmp_path, capsys):
    flat = [1.0 + 0.1 * (i % 3) for i in range(40)]
    write_run(tmp_path / "a", {"ppo.gamma": 0.9, "seed": 0, "train.total_agent_steps": 4000}, flat)
    write_run(
        tmp_path / "b",
        {"ppo.gamma": 0.9, "seed": 1, "train.total_agent_steps": 4000},
        [f - 0.9 for f in flat],
    )
    write_run(tmp_path / "c", {"ppo.gamma": 0.5, "seed": 1, "train.total_agent_steps": 4000}, flat)
    for other, words in (("b", "no setting"), ("c", "do not part"), ("nowhere", "no run")):
        status, _, error = command(capsys, tmp_path / "a", tmp_path / other)
        assert status == 2 and words in error
    status, _, error = command(capsys, tmp_path / "a", tmp_path / "b", "--seeds", "0")
    assert status == 2 and "--seeds 0" in error


@pytest.mark.slow
def test_on_real_runs_one_of_five_settings_is_named(tmp_path, capsys):
    """Two short runs of a probe env that differ in five settings; with a learning rate next to 0
    nothing is learned."""
    import ludus

    harmless = {
        "ppo.epochs": 5,
        "ppo.gae_lambda": 0.9,
        "policy.activation": "relu",
        "ppo.value_weight": 0.7,
    }
    for name, changes in (("good", {}), ("bad", {"ppo.learning_rate": 1e-7, **harmless})):
        settings = {"train.total_agent_steps": 6_000, "train.threads": 1, "envs": 8, **changes}
        ludus.train(
            "gym:ludus.examine.probes:ProbeMatch-v0", run=tmp_path / name, quiet=True, **settings
        )
    arguments = (
        tmp_path / "good",
        tmp_path / "bad",
        "--seeds",
        "2",
        "--run",
        tmp_path / "trials",
        "--json",
    )
    status, out, _ = command(capsys, *arguments)
    told = json.loads(out)
    assert (
        status == 0
        and [c["keys"] for c in told["causes"]] == [["ppo.learning_rate"]]
        and len(told["differences"]) == 5
    )
    again = json.loads(command(capsys, *arguments)[1])
    assert again["causes"] == told["causes"] and again["cost"] == told["cost"]


# -- launching -------------------------------------------------------------------------------------


def test_a_trial_has_the_good_settings_but_for_its_subset():
    from ludus.examine.launch import Launcher

    made = Launcher(
        {"ppo.gamma": 0.9, "game.speed": 2, "seed": 7}, {"ppo.gamma": 0.5, "ppo.clip": 0.1}, 1
    )
    assert made.settings(Trial(frozenset(), 3)) == {"ppo.gamma": 0.9, "game.speed": 2, "seed": 3}
    both = made.settings(Trial(frozenset(["ppo.gamma", "game.speed"]), 3))
    assert both == {"ppo.gamma": 0.5, "seed": 3}  # what the bad run does not set is not set


def test_an_algorithm_brings_its_own_settings():
    from ludus.examine.launch import Launcher

    good = {"algorithm": "ppo", "envs": 8, "ppo.clip": 0.2, "ppo.gamma": 0.9}
    bad = {"algorithm": "rainbow", "envs": 4, "rainbow.n_step": 5, "rainbow.gamma": 0.5}
    made = Launcher(good, bad, 1)
    assert made.settings(Trial(frozenset(["algorithm"]), 3)) == {**bad, "envs": 8, "seed": 3}
    assert made.settings(Trial(frozenset(["envs"]), 3)) == {**good, "envs": 4, "seed": 3}


def test_settings_that_are_refused_give_a_result_without_a_number(tmp_path):
    from ludus.config import Config, flatten
    from ludus.examine.launch import run_trial

    config = Config(game="gym:CartPole-v1", envs=4)
    config.learner.minibatches, config.train.total_agent_steps, config.train.threads = 7, 1_000, 1
    (tmp_path / "trial.json").write_text(json.dumps({"subset": [], "values": flatten(config)}))
    run_trial(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text()) == {
        "levels": {},
        "agent_steps": 0,
        "seconds": 0.0,
        "stopped": "",
    }


def test_a_trial_that_dies_is_an_error_with_its_last_words(tmp_path):
    from ludus.examine.launch import Launcher

    launch = Launcher({"train.total_agent_steps": 10}, {}, 1)  # of no game at all
    with pytest.raises(LudusError, match="without a result"):
        launch([(Trial(frozenset(), 0), tmp_path / "x")])


def test_a_trial_that_another_process_trains_is_waited_for(tmp_path, monkeypatch):
    """As after a bisection that was killed and left its last trial running."""
    import fcntl
    import threading

    from ludus.examine import launch

    trained: list[Path] = []
    monkeypatch.setattr(launch, "_train", trained.append)
    with open(tmp_path / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=launch.run_trial, args=(tmp_path,))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        write_result(tmp_path, {"levels": {}})
    waiting.join(5)
    assert not waiting.is_alive() and trained == []
    (tmp_path / "result.json").write_text("{")  # cut off
    launch.run_trial(tmp_path)
    assert trained == [tmp_path]

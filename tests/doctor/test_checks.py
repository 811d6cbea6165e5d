"""Where checks must stay silent, or speak: a real log with one thing changed, or curves whose
answer is known. Sick and healthy examples from real runs are in test_logs.py."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from ludus.doctor.checks.entropy import entropy_collapsed, entropy_stuck
from ludus.doctor.checks.environment import game_changed
from ludus.doctor.checks.gradients import gradient_explodes
from ludus.doctor.checks.learning import evaluation_below_training, learned_by_heart, return_flat
from ludus.doctor.checks.memory import keys_not_foretold
from ludus.doctor.checks.value import value_loss_grows
from ludus.doctor.live import Watcher
from ludus.doctor.log import Curve, Log, began_with, read_log
from ludus.doctor.names import full_name
from ludus.doctor.watch import examine
from ludus.intervals import wilson

LUDUS = Path(__file__).parent / "logs" / "ludus"


def healthy(name: str = "healthy_cartpole") -> Log:
    return read_log(LUDUS / name)


def rows(log: Log) -> np.ndarray:
    return log.curves["progress/agent_steps"].steps


def put(log: Log, name: str, values: np.ndarray | float) -> None:
    """A column of these values, one for each row of the log."""
    steps = rows(log)
    log.curves[name] = Curve(
        name, steps, np.broadcast_to(np.asarray(values, float), steps.shape).copy()
    )


def change(log: Log, name: str, values: np.ndarray) -> None:
    log.curves[name] = dataclasses.replace(log.curves[name], values=values)


def value_runs_away(log: Log) -> None:
    """Ends a thousand times above its lowest, at 50, while nothing is learnt."""
    put(log, "learner/agent/value_loss", np.geomspace(0.05, 50.0, len(rows(log))))
    put(log, "episode/agent/return", 20.0 + np.random.default_rng(0).normal(size=len(rows(log))))


def never_tries(log: Log) -> None:
    put(log, "action/agent/move/left", 0.0)
    put(log, "action/agent/move/right", 1.0)


def test_a_role_that_is_held_still_for_a_while_is_not_sick():
    """Hiders wait until seekers can see: a learning rate of 0, hence no gradient and no
    movement."""
    log = healthy("healthy_pursuit")
    waits = np.arange(len(rows(log))) < 0.8 * len(rows(log))
    for key in ("lr", "grad_norm", "approx_kl"):
        change(
            log,
            f"learner/runner/{key}",
            np.where(waits, 0.0, log.curves[f"learner/runner/{key}"].values),
        )
    assert not {"policy_frozen", "gradient_vanishes", "gradient_explodes"} & {
        f.check for f in examine(log)
    }


def test_a_value_loss_that_leaves_zero_is_no_divergence():
    """Hiders that are never found have nothing to predict; once seekers learn, the normalised loss
    rises to its usual 0.3."""
    log = healthy()
    value_runs_away(log)
    change(log, "learner/agent/value_loss", log.curves["learner/agent/value_loss"].values * 0.006)
    assert "value_loss_grows" not in {f.check for f in examine(log)}


def test_what_a_mask_forbids_is_not_held_against_the_policy():
    log = healthy()
    never_tries(log)
    log.lists["mask/agent/never_allowed"] = ["move/left"]
    (found,) = [f for f in examine(log) if f.check == "action_never_tried"]
    assert found.severity == "info" and "mask did not allow" in found.cause


def test_losing_less_is_no_forgetting():
    """Rates of losses and draws may fall as far as they like."""
    from ludus.doctor.checks.self_play import forgetting
    from ludus.doctor.log import Curve, Log

    steps = np.arange(1, 6) * 1000.0

    def log(metric):
        name, values = f"eval/bot:still/{metric}", np.array([0.9, 0.8, 0.4, 0.1, 0.0])
        shifts = {"": 0.0, "_low": -0.05, "_high": 0.05}
        return Log(
            "here",
            {name + end: Curve(name + end, steps, values + shift) for end, shift in shifts.items()},
        )

    assert not list(forgetting(log("loss_rate")))
    assert [finding.check for finding in forgetting(log("win_rate"))] == ["forgetting"]


def test_winning_by_less_is_no_forgetting():
    """The margin falls from 126 to 112, and every game is still won; with half of them lost it is
    told."""
    from ludus.doctor.checks.self_play import forgetting
    from ludus.doctor.log import Curve, Log

    steps, margin = np.arange(1, 4) * 1000.0, np.array([110.0, 126.0, 112.0])

    def log(wins):
        curves = {
            "damage": margin,
            "damage_low": margin - 3,
            "damage_high": margin + 3,
            "win_rate": np.array([1.0, 1.0, wins]),
        }
        return Log(
            "here",
            {
                f"eval/bot:b/{name}": Curve(f"eval/bot:b/{name}", steps, values)
                for name, values in curves.items()
            },
        )

    assert not list(forgetting(log(1.0)))
    assert [finding.check for finding in forgetting(log(0.5))] == ["forgetting"]


def evaluations(wins, games=64):
    """Shares of games won, one row of `wins` per opponent, with their intervals."""
    steps, curves = np.arange(1, wins.shape[1] + 1) * 1000.0, {}
    for i, row in enumerate(wins):
        low, high = np.array([wilson(won, games) for won in row]).T
        for end, values in (("", row / games), ("_low", low), ("_high", high)):
            curves[f"eval/bot:{i}/win_rate{end}"] = Curve(
                f"eval/bot:{i}/win_rate{end}", steps, values
            )
    return Log("here", curves)


def test_the_luckiest_of_many_evaluations_is_no_skill_that_was_lost():
    """Eight opponents, thirty evaluations of 64 games each, a share of wins that never changes: at
    most one log in twenty is told that it forgets. Wins that fall from 0.9 to 0.6 are found among
    as many in most logs."""
    from ludus.doctor.checks.self_play import forgetting

    random, chance = np.random.default_rng(0), np.full((8, 30), 0.3)
    assert (
        sum(bool(list(forgetting(evaluations(random.binomial(64, chance))))) for _ in range(200))
        <= 10
    )
    chance[0, :-1], chance[0, -1] = 0.9, 0.6
    assert (
        sum(bool(list(forgetting(evaluations(random.binomial(64, chance))))) for _ in range(200))
        >= 150
    )


@pytest.mark.parametrize(("last", "severity"), [(58, []), (36, ["warning"]), (6, ["critical"])])
def test_how_much_was_surely_forgotten(last, severity):
    from ludus.doctor.checks.self_play import forgetting

    assert [
        f.severity for f in forgetting(evaluations(np.array([[20, 40, 60, 60, last]])))
    ] == severity


@pytest.mark.parametrize(("envs", "told"), [(64, True), (100_000, False)])
def test_the_first_episodes_to_end_are_short_and_say_nothing_of_sides(envs, told):
    """A seeker wins all episodes of twenty rows: with 64 envs nearly all came after their first,
    with 100,000 none did."""
    from ludus.doctor.checks.self_play import one_sided

    steps = np.arange(1, 21) * 1000.0
    values = {
        "episode/seeker/won": np.ones(20),
        "episode/hider/won": np.zeros(20),
        "progress/episodes": np.arange(20) * 64.0,
    }
    log = Log("here", {n: Curve(n, steps, v) for n, v in values.items()}, config={"envs": envs})
    assert [f.check for f in one_sided(log)] == (["one_sided"] if told else [])


@pytest.mark.parametrize(
    ("first", "last", "severity"), [(62, 44, []), (62, 6, ["critical"]), (40, 44, ["warning"])]
)
def test_what_the_first_evaluation_shows_may_never_have_been_learned(first, last, severity):
    from ludus.doctor.checks.self_play import forgetting

    assert [
        f.severity for f in forgetting(evaluations(np.array([[first, 61, 55, last]])))
    ] == severity


def test_what_is_given_up_for_a_higher_return_is_not_forgotten():
    """Survival falls from 0.8 to 0.2: with a return that rises, or stays, it was a bad way to
    play."""
    from ludus.doctor.checks.self_play import forgetting

    steps, survival = np.arange(1, 5) * 1000.0, np.array([0.8, 0.6, 0.3, 0.2])

    def told(returns, role=""):
        shifts = (("", 0.0), ("_low", -0.05), ("_high", 0.05))
        curves = {f"eval/bot:b/survival{end}": survival + shift for end, shift in shifts}
        curves |= {
            f"eval/bot:b/{role}return{end}": np.array(returns) + 20 * shift for end, shift in shifts
        }
        curves |= {"goal/mech/survival": survival, "goal/other/win": survival}
        return [
            f.check
            for f in forgetting(Log("here", {n: Curve(n, steps, v) for n, v in curves.items()}))
        ]

    for role in ("", "mech/"):
        assert told([-18.0, -5.0, 3.0, 10.0], role) == told([5.0, 5.0, 6.0, 4.5], role) == []
        assert told([18.0, 5.0, 3.0, -10.0], role) == ["forgetting"]
    # another role's return says nothing about it
    assert told([-18.0, -5.0, 3.0, 10.0], "other/") == ["forgetting"]


def test_a_return_that_falls_against_its_own_past_is_no_fall():
    """Up to 100 and down to 20 again: a fall, unless the agent's snapshots are among its
    opponents."""
    from ludus.doctor.checks.learning import return_falls
    from ludus.doctor.log import Curve, Log

    steps = np.arange(1, 61) * 1000.0
    returns = np.concatenate([np.linspace(0, 100, 30), np.linspace(100, 20, 30)])
    curves = {"episode/a/return": returns}
    assert [
        f.check
        for f in return_falls(Log("here", {n: Curve(n, steps, v) for n, v in curves.items()}))
    ] == ["return_falls"]
    curves["league/pool/win_rate"] = np.full(60, 0.6)
    assert not list(return_falls(Log("here", {n: Curve(n, steps, v) for n, v in curves.items()})))


def test_a_stage_with_harder_opponents_is_neither_a_fall_nor_a_slowdown():
    """When a curriculum moves on, the return falls to a third and steps take twice as long; then
    both hold."""
    from ludus.doctor.checks.learning import return_falls, return_flat
    from ludus.doctor.checks.throughput import slowing_down
    from ludus.doctor.log import Curve, Log

    steps = np.arange(1, 101) * 1000.0
    curves = {
        "episode/a/return": np.concatenate([np.linspace(0, 100, 40), np.linspace(30, 31, 60)]),
        "speed/agent_steps_per_s": np.concatenate(
            [np.full(40, 9000.0), np.linspace(4600, 4400, 60)]
        ),
    }

    def found():
        log = Log("here", {name: Curve(name, steps, values) for name, values in curves.items()})
        return [f.check for check in (return_falls, return_flat, slowing_down) for f in check(log)]

    assert "return_falls" in found()
    curves["curriculum/stage"] = (np.arange(100) >= 40).astype(float)
    assert found() == []


def test_a_goal_that_leans_upwards_is_not_held_against_the_return():
    """The return rises surely; catches from 0.01 to 0.05, among noise of the same size: they may
    well follow."""
    from ludus.doctor.checks.reward_hacking import return_without_goal

    steps, random = np.arange(1, 41) * 1000.0, np.random.default_rng(1)
    rising = np.linspace(-8.0, -2.0, 40) + 0.3 * random.normal(size=40)

    def told(end):
        goal = np.linspace(0.03, end, 40) + 0.03 * random.normal(size=40)
        names = {"episode/seeker/return": rising, "goal/seeker/catch_rate": goal}
        return [
            f.check
            for f in return_without_goal(
                Log("here", {n: Curve(n, steps, v) for n, v in names.items()})
            )
        ]

    assert told(0.06) == []
    assert told(0.0) == ["return_without_goal"]


@pytest.mark.parametrize(
    ("returns", "spread", "goals"),
    [((-15.0, -25.0), 3.0, (0.52, 0.46)), ((100.0, 125.0), 25.0, (0.35, 0.43))],
)
def test_a_return_that_goes_the_way_of_its_goal_is_no_contradiction(returns, spread, goals):
    """A hider's return and survival fall together, a seeker's rise together, among noise."""
    from ludus.doctor.checks.reward_hacking import return_without_goal

    steps, random = np.arange(1, 121) * 1000.0, np.random.default_rng(2)
    for _ in range(50):
        luck = random.normal(size=120)  # of the same episodes: who catches more earns more
        names = {"episode/a/return": np.linspace(*returns, 120) + spread * luck}
        names |= {
            "goal/a/rate": np.linspace(*goals, 120) + 0.1 * luck + 0.05 * random.normal(size=120)
        }
        assert not list(
            return_without_goal(Log("here", {n: Curve(n, steps, v) for n, v in names.items()}))
        )


@pytest.mark.parametrize(
    ("returns", "goal", "told"),
    [
        ((130.0, 131.0), (0.4, 0.02), ["warning"]),  # near pays, and nobody is caught any more
        ((130.0, 115.0), (0.4, 0.02), ["warning"]),
        # those who flee learn too, and the reward falls with the catches
        ((130.0, 90.0), (0.4, 0.02), []),
        ((130.0, 131.0), (0.4, 0.3), []),
        ((-115.0, -130.0), (0.4, 0.02), []),  # less is paid, by a share that nobody can tell
        ((90.0, 135.0), (0.4, 0.02), ["critical"]),
    ],
)
def test_a_return_that_holds_while_its_goal_is_lost(returns, goal, told):
    from ludus.doctor.checks.reward_hacking import return_without_goal

    names = {"episode/chaser/return": noisy(np.linspace(*returns, 120), 6.0)}
    names |= {"goal/chaser/catch_rate": noisy(np.linspace(*goal, 120), 0.05)}
    log = Log("here", {n: Curve(n, np.arange(1, 121) * 1000.0, v) for n, v in names.items()})
    assert [f.severity for f in return_without_goal(log)] == told
    log.better_low |= {"catch_rate"}  # had it been a time, all would be well
    assert not list(return_without_goal(log))


@pytest.mark.parametrize(("rounds_in_which_it_falls", "told"), [(0.9, []), (5.0, ["warning"])])
def test_successes_that_end_episodes_early_are_no_goal_that_is_lost(rounds_in_which_it_falls, told):
    """Of the first episodes those with a catch end first: ten rounds in all, the share of catches
    falls over the first of them, or half."""
    from ludus.doctor.checks.reward_hacking import return_without_goal

    rounds = np.linspace(0, 10, 120)
    names = {"episode/chaser/return": noisy(130.0, 6.0), "progress/episodes": 8 * rounds}
    names |= {
        "goal/chaser/catch_rate": noisy(
            np.interp(rounds, [0, rounds_in_which_it_falls], [0.9, 0.1]), 0.03
        )
    }
    log = Log(
        "here",
        {n: Curve(n, np.arange(1, 121) * 1000.0, v) for n, v in names.items()},
        config={"envs": 8},
    )
    assert [f.severity for f in return_without_goal(log)] == told


def test_a_goal_that_no_evaluation_reached():
    """Told by the measure that chooses checkpoints, after three evaluations; before half of the
    budget it is no warning."""

    def told(values, share=1.0, metric="eval/self/finish"):
        watcher = Watcher({"checkpoint.best_metric": metric})
        for i, value in enumerate(values):
            watcher.add(
                {
                    "progress/agent_steps": 1000 * i,
                    "eval/self/finish": value,
                    "eval/self/time": 0.0,
                    "eval/self/return": 3.0 * i,
                }
            )
        watcher.look(1000, share)
        return [(f.check, f.severity) for f in watcher.findings]

    assert told([0.0] * 3) == [("goal_not_reached", "warning")] and told([0.0] * 3, 0.4) == [
        ("goal_not_reached", "info")
    ]
    assert told([0.0] * 2) == told([0.0, 0.0, 0.01]) == told([0.0] * 3, metric=None) == []


def test_the_same_sum_sooner_and_sooner_is_progress():
    """Every episode earns 1 at its end; lengths fall from 60 to 8, or stay, or the sum is 0."""
    from ludus.doctor.progress import of_role

    steps = np.arange(1, 41) * 500.0

    def log(value, lengths):
        names = {"episode/agent/return": np.full(40, value), "episode/agent/length": lengths}
        return Log("here", {n: Curve(n, steps, v) for n, v in names.items()})

    sooner = log(1.0, np.linspace(60.0, 8.0, 40))
    assert of_role(sooner, "agent").learned and not {"reward_never_met", "return_flat"} & {
        f.check for f in examine(sooner)
    }
    later = log(1.0, np.linspace(8.0, 60.0, 40))
    assert of_role(later, "agent").flat and "length" in of_role(later, "agent").measure
    nothing = log(0.0, np.linspace(60.0, 8.0, 40))
    assert "reward_never_met" in {f.check for f in examine(nothing)}


def test_rows_that_do_not_learn_are_not_compared_with_rows_that_do():
    """A replay fills for 20 rows without updates, ten times as fast; then the pace is steady, or
    the seconds per step grow evenly, to 2.3 and 5.4 times what they were."""
    from ludus.doctor.checks.throughput import slowing_down

    n = 60
    steps = np.arange(1, n + 1) * 500.0
    updates = np.maximum(0, np.arange(1, n + 1) - 20) * 30.0

    def told(cpu):
        names = {
            "progress/agent_steps": steps,
            "progress/updates": updates,
            "speed/cpu_seconds": cpu,
        }
        return [
            f.severity
            for f in slowing_down(
                Log("here", {k: Curve(k, steps, v) for k, v in names.items()}, ours=True)
            )
        ]

    fast = np.arange(n) < 20
    assert told(np.where(fast, 0.02, 0.2)) == []
    assert told(np.where(fast, 0.02, np.linspace(0.0, 1.2, n))) == ["warning"]
    assert told(np.where(fast, 0.02, np.linspace(-0.4, 1.2, n))) == ["critical"]


def test_resets_that_take_most_of_the_time():
    """Half of all rows spend 0.9 of their time in resets: 0.45 on the whole; with 0.4 of it,
    0.2."""
    from ludus.doctor.checks.throughput import resets_dominate

    steps = np.arange(1, 41) * 500.0

    def told(share):
        curves = {
            "progress/agent_steps": Curve("s", steps, steps),
            "speed/share/reset": Curve("r", steps[::2], np.full(20, share)),
        }
        return [f.evidence for f in resets_dominate(Log("here", curves, ours=True))]

    assert told(0.9) == ["speed/share/reset is 0.45 over the last half"] and told(0.4) == []


@pytest.mark.parametrize(
    ("explores", "severity", "cause"),
    [
        (0.0, "critical", "harmful"),
        (0.3, "critical", "random actions it began with"),
        (0.8, "warning", "random actions it began with"),
    ],
)
def test_a_return_that_falls_with_the_share_of_random_actions_is_no_wrong_sign(
    explores, severity, cause
):
    """CartPole with values that were learnt from little: 22 at random, 9.5 by them. `explores`:
    share of rows in which epsilon falls."""
    steps = np.arange(1, 41) * 100.0
    epsilon = (
        np.clip(1 - np.arange(40) / max(40 * explores, 1e-9), 0.02, 1)
        if explores
        else np.full(40, 0.02)
    )
    returns = (
        22 - 12.5 * (1 - epsilon) if explores else np.linspace(22, 9.5, 40)
    ) + 0.3 * np.random.default_rng(0).normal(size=40)
    values = {
        "episode/agent/return": returns,
        "learner/agent/epsilon": epsilon,
        "learner/agent/value_loss": np.ones(40),
    }
    log = Log("x", {name: Curve(name, steps, v) for name, v in values.items()})
    (found,) = return_flat(log)
    assert found.severity == severity and cause in found.cause


def log_of(rows=120, **curves):
    """Curves of a log that is not ours, by our short names, over so many rows of 1,000 steps."""
    steps = np.arange(1, rows + 1) * 1000.0
    named = {
        full_name(key): np.broadcast_to(np.asarray(values, float), steps.shape)
        for key, values in curves.items()
    }
    return Log("here", {name: Curve(name, steps, values) for name, values in named.items()})


def noisy(values, size=1.0, rows=120):
    return np.broadcast_to(values, rows) + size * np.random.default_rng(0).normal(size=rows)


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [(-180, -150, True), (-180, 170, False), (-900, -500, False), (200, 200, False)],
)
def test_evaluations_that_do_not_follow_training(first, last, told):
    """Training rises from -180 to 250. Evaluation stays, follows, is counted in another unit, or
    begins when all is learnt."""
    log = log_of(**{"return": noisy(np.linspace(-180, 250, 120), 10.0)})
    log.curves["eval/self/agent/return"] = Curve(
        "e", np.arange(1, 21) * 6000.0, noisy(np.linspace(first, last, 20), 15.0, 20)
    )
    assert [f.severity for f in evaluation_below_training(log)] == (["warning"] if told else [])
    log.ours = True
    assert not list(evaluation_below_training(log))


@pytest.mark.parametrize(
    ("last_return", "last_loss", "told"),
    [(90.0, 1e8, True), (90.0, 1e4, False), (9000.0, 1e6, False)],
)
def test_an_error_beyond_all_returns_is_told_though_the_return_rises(last_return, last_loss, told):
    """The loss grows from 1: an error of 10,000 beside returns of 90, one of 100, and one of 1,000
    beside returns of 9,000."""
    log = log_of(
        value_loss=np.geomspace(1, last_loss, 120),
        **{"return": noisy(np.linspace(1, last_return, 120))},
    )
    found = list(value_loss_grows(log))
    assert bool(found) == told and all("largest return seen" in f.evidence for f in found)


def early_certain(returns):
    return log_of(
        entropy=np.where(np.arange(120) < 12, np.linspace(1.38, 0.1, 120), 0.01),
        **{"return": returns},
    )


def test_a_policy_that_is_certain_early_and_earns_hardly_more_since():
    """From -180 to -120 within the first tenth, or from 20 to 500: the second has solved its
    task."""
    rise = np.clip(np.arange(120) / 8, 0, 1)
    (found,) = entropy_collapsed(early_certain(noisy(-180 + 60 * rise, 3.0)))
    assert (found.severity, found.confidence) == ("warning", 0.5)
    assert "hardly more" in found.evidence and "not risen" not in found.evidence
    assert not list(entropy_collapsed(early_certain(noisy(20 + 480 * rise, 3.0))))


def test_a_task_that_was_solved_long_before_the_policy_was_certain():
    """500 from the first twentieth on, certain after a third: what it earned before that is no
    measure of random play."""
    rows = np.arange(120)
    log = early_certain(noisy(20 + 480 * np.clip(rows / 6, 0, 1), 3.0))
    change(log, "learner/agent/entropy", np.where(rows < 40, np.linspace(1.38, 0.1, 120), 0.01))
    assert not list(entropy_collapsed(log))


def test_a_rise_that_broke_off_is_not_called_none():
    """From 20 to 220 in half of the run, then 9 at once: beside the noise that this jump makes, no
    rise is sure."""
    returns = np.where(np.arange(120) < 56, np.linspace(20, 450, 120), 9.0)
    (found,) = return_flat(log_of(loss=1.0, **{"return": noisy(returns, 1.0)}))
    assert (
        "rose to" in found.cause
        and "back at 9" in found.cause
        and "nothing is being learnt" not in found.cause
    )
    (flat,) = return_flat(log_of(loss=1.0, **{"return": noisy(20.0)}))
    assert "nothing is being learnt" in flat.cause


@pytest.mark.parametrize(("broken", "told"), [(None, True), (60_000, False), (90_000, True)])
def test_a_network_that_broke_is_no_change_of_the_game(broken, told):
    lengths = np.where(np.arange(120) < 60, 300.0, 9.0)
    log = log_of(length=noisy(lengths, 0.2), **{"return": noisy(lengths, 0.2)})
    log.not_finite = {} if broken is None else {"learner/agent/grad_norm": broken}
    assert [f.check for f in game_changed(log)] == (["game_changed"] if told else [])


@pytest.mark.parametrize(
    ("curves", "words"),
    [
        ({"approx_kl": 1e-7}, "see policy_frozen"),
        ({"return": -200.0}, "see reward_never_met"),
        ({"entropy_coefficient": 0.0}, "is 0 already"),
        ({"entropy_coefficient": 0.5}, "(now 0.5) to 0.01"),
        ({"approx_kl": 0.01}, "lower the entropy coefficient to 0.01"),
    ],
)
def test_a_policy_that_stays_random_is_told_what_keeps_it_so(curves, words):
    log = log_of(**{"entropy": 1.386, "return": noisy(20.0), **curves})
    log.config = {"algorithm": "ppo", "ppo.entropy": None}
    (found,) = entropy_stuck(log)
    assert words in found.fix and bool(found.overrides) == ("to 0.01" in words)


def test_the_step_at_which_gradients_began_to_grow():
    """1 for half of the run, then up to 100,000: ten times the early level at row 72, which is in
    the window from row 72 on."""
    norms = np.concatenate([np.ones(60), np.geomspace(1, 1e5, 60)])
    (found,) = gradient_explodes(log_of(grad_norm=norms))
    assert found.first_step == 73_000


@pytest.mark.parametrize(
    ("own", "guess", "shuffled", "severity"),
    [
        (0.21, 0.21, None, "warning"),
        (0.18, 0.21, 0.18, "warning"),
        (0.18, 0.21, 0.23, "info"),
        (0.18, 0.21, None, "info"),
    ],
)
def test_keys_must_be_foretold_better_than_by_a_guess_and_than_by_the_vector_of_another_match(
    own, guess, shuffled, severity
):
    values = {"keys_loss": own, "keys_guess": guess, "keys_loss_shuffled": shuffled}
    names = {f"intervention/fighter/none/{n}": v for n, v in values.items() if v is not None}
    names["episode/fighter/return"] = 1.0
    log = Log("here", {n: Curve(n, np.array([1000]), np.array([v])) for n, v in names.items()})
    assert [(f.check, f.severity) for f in keys_not_foretold(log)] == [
        ("keys_not_foretold", severity)
    ]


def test_levels_known_by_heart_are_not_told_before_every_env_has_played_some():
    steps = np.array([1000, 2000])
    names = {
        "league/bot:b/win_rate": 0.5,
        "league/bot:b/win_rate_low": 0.4,
        "eval/bot:b/win_rate": 0.2,
        "eval/bot:b/win_rate_high": 0.3,
    }

    def told(episodes: float) -> list[str]:
        values = {
            **{n: np.full(2, v) for n, v in names.items()},
            "progress/episodes": np.array([0.0, episodes]),
        }
        return [
            f.check
            for f in learned_by_heart(
                Log("here", {n: Curve(n, steps, v) for n, v in values.items()}, config={"envs": 10})
            )
        ]

    assert told(39.0) == [] and told(40.0) == ["learned_by_heart"]


@pytest.mark.parametrize(
    ("stored", "far", "told"),
    [
        ({"init_from": "runs/fighter"}, 2.0, "critical"),
        ({"init_from": "runs/fighter", "init_modules": ["actor", "action_head"]}, 0.3, "warning"),
        ({"init_from": "runs/fighter"}, 0.06, None),
        # the actions are new: there is no play to lose
        ({"init_from": "runs/fighter", "init_modules": ["encoder"]}, 2.0, None),
        ({}, 2.0, None),
    ],
)
def test_a_policy_that_is_lost_in_the_first_updates(stored, far, told):
    log = healthy()
    log.began_with = began_with(stored)
    kl = log.curves["learner/agent/approx_kl"].values
    change(log, "learner/agent/approx_kl", np.where(np.arange(len(kl)) == 0, far, kl))
    found = [f for f in examine(log) if f.check == "beginning_lost"]
    assert [f.severity for f in found] == ([told] if told else [])
    assert not found or ("runs/fighter" in found[0].cause and f"KL {far:.3g}" in found[0].evidence)

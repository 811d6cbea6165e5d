"""The doctor on logs of real runs: ours, Stable-Baselines3's and others (make_*.py beside them say
how they were made)."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from ludus.cli import main
from ludus.doctor.finding import verdict
from ludus.doctor.log import read_log
from ludus.doctor.watch import checked, examine
from ludus.errors import LudusError

LOGS = Path(__file__).parent / "logs"
HEALTHY = sorted(
    [*LOGS.glob("sb3/healthy*.csv"), *LOGS.glob("ludus/healthy*"), *LOGS.glob("others/healthy*")]
)

# log → the checks that must be critical, the first of which must come first
SICK = {
    "sb3/sick_ppo_learning_rate_large.csv": ["updates_too_large", "entropy_collapsed"],
    "sb3/sick_ppo_learning_rate_tiny.csv": ["policy_frozen"],
    "sb3/sick_ppo_entropy_large.csv": ["entropy_stuck", "return_flat"],
    "sb3/sick_ppo_gamma_zero.csv": ["return_flat"],
    "sb3/sick_ppo_no_reward_seen.csv": ["reward_never_met"],
    "sb3/sick_ppo_entropy_bonus_continuous.csv": ["entropy_rising"],
    "sb3/sick_a2c_learning_rate_large.csv": ["entropy_collapsed"],
    "sb3/sick_dqn_diverges.csv": ["value_loss_grows"],
    "sb3/sick_dqn_no_exploration.csv": ["reward_never_met", "exploration_spent"],
    "sb3/sick_dqn_reward_nan.csv": ["not_finite"],
    "sb3/sick_ppo_one_batch_many_epochs.csv": ["updates_too_large", "return_falls"],
    "sb3/later_sick_clip_tiny.csv": ["policy_frozen"],
    "sb3/later_sick_rate.csv": ["updates_too_large"],
    "sb3/later_sick_blind.csv": ["entropy_stuck", "return_flat"],
    "sb3/later_sick_dqn_rate.csv": ["return_falls"],
    "sb3/later_sick_value.csv": ["return_flat"],
    "sb3/later_sick_dqn_always_random.csv": ["only_exploring", "return_flat"],
    "others/sick_cleanrl_dqn_target_never.tfevents": ["values_see_one_step", "return_flat"],
    "others/sick_rllib_old_reward_scale.json": ["policy_frozen"],
    "ludus/sick_near_pays": ["return_without_goal"],
    "ludus/sick_forgets": ["updates_too_large"],
    "ludus/sick_leak": ["slowing_down", "memory_grows"],
    "ludus/sick_learning_rate": ["updates_too_large"],
    "ludus/sick_begun": ["beginning_lost"],
    "ludus/sick_entropy": ["entropy_stuck"],
    "ludus/sick_gradient": ["gradient_vanishes", "updates_too_large"],
    "ludus/sick_saturated": ["updates_too_large", "actions_saturated"],
    "sb3/sick_ppo_noise_tiny.csv": ["updates_too_large", "noise_collapsed"],
    "ludus/sick_shifting": ["return_falls"],
    "ludus/sick_blind": ["observations_broken"],
    "ludus/sick_short_sighted": ["values_see_few_steps", "return_falls"],
}
# log → a warning that it must get
WARNED = {
    "ludus/sick_hasty": "episodes_too_short",
    "ludus/sick_shifting": "game_changed",
    "sb3/later_sick_blinded_late.csv": "game_changed",
    "others/sick_rllib_new_entropy.json": "entropy_stuck",
    "ludus/sick_one_sided": "one_sided",
    "ludus/sick_forgets": "forgetting",
    "ludus/sick_learning_rate": "dead_units",
    "ludus/sick_explodes": "gradient_explodes",
    "ludus/sick_memory": "memory_unused",
    "ludus/sick_untried": "action_never_tried",
    "ludus/sick_strategy": "attention_uniform",
    "ludus/sick_swings": "return_swings",
    "ludus/sick_by_heart": "learned_by_heart",
    "ludus/sick_outrun": "one_sided",
    "ludus/sick_declines": "evaluation_falls",
    "ludus/sick_short_sighted": "goal_not_reached",
}


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.stem)
def test_healthy_runs_are_ok(path):
    found = examine(read_log(path))
    few = path.stem == "healthy_sac_pendulum"  # 7 rows
    assert verdict(found) == ("too_little_data" if few else "ok"), [f.check for f in found]


@pytest.mark.parametrize("name", SICK)
def test_sick_runs_are_named(name):
    critical = [f.check for f in examine(read_log(LOGS / name)) if f.severity == "critical"]
    assert critical[0] == SICK[name][0] and set(SICK[name]) <= set(critical), critical


@pytest.mark.parametrize("name", WARNED)
def test_sick_runs_are_warned_of(name):
    warnings = [f.check for f in examine(read_log(LOGS / name)) if f.severity == "warning"]
    assert WARNED[name] in warnings, warnings


def test_the_step_at_which_a_game_changed():
    """Each of sixteen envs cuts its episodes after its 1,500th step: at about 24,000 in all."""
    (found,) = [
        f for f in examine(read_log(LOGS / "ludus/sick_shifting")) if f.check == "game_changed"
    ]
    assert 23_000 < (found.first_step or 0) < 25_000 and "20 after step" in found.evidence


def test_a_goal_column_shows_that_the_reward_has_the_wrong_sign():
    """CartPole with its reward negated: the return rises because poles fall sooner."""
    path = LOGS / "sb3/sick_ppo_reward_flipped.csv"
    assert "return_without_goal" not in [f.check for f in examine(read_log(path))]
    found = examine(read_log(path, {"goal": "rollout/ep_len_mean"}))
    assert found[0].check == "return_without_goal" and found[0].severity == "critical"


def test_skill_that_is_lost_is_named():
    """Pursuit whose learning rate jumps to 0.3 at 60% of the run: runners lose what they had learnt
    against fixed bots."""
    found = [f for f in examine(read_log(LOGS / "ludus/sick_forgets")) if f.check == "forgetting"]
    assert len(found) == 1 and "bot:random/survival" in found[0].evidence
    assert not [
        f for f in examine(read_log(LOGS / "ludus/healthy_pursuit")) if f.check == "forgetting"
    ]


def test_how_far_ahead_values_see_is_told():
    """39,264 updates, a copy after every 1,500, each worth one step: 26. The mean value is what 26
    steps pay on average."""
    log = read_log(LOGS / "ludus/sick_short_sighted")
    (found,) = [f for f in examine(log) if f.check == "values_see_few_steps"]
    assert "the next 26 steps" in found.cause and found.overrides == {"rainbow.target_every": "100"}
    q, returns, lengths = (
        log.of("driver", key).values[-40:].mean() for key in ("q_mean", "return", "length")
    )
    assert q == pytest.approx(26 * returns / lengths, rel=0.25)


def test_a_chaser_that_was_outrun_for_most_of_the_run_is_told_so_at_its_end():
    """It began to catch when the learning rate was almost 0: too late, and the last rows alone
    would not tell."""
    (found,) = [f for f in examine(read_log(LOGS / "ludus/sick_outrun")) if f.check == "one_sided"]
    assert (
        found.cause.startswith("runner wins")
        and "0.96 in every second row of the run, 0.87 at its end" in found.evidence
    )


def test_a_run_is_told_that_it_knows_its_maps_by_heart():
    """Mechs on eight maps beats the bot in three of four games there, and in half of those on maps
    it never saw."""
    (found,) = [
        f for f in examine(read_log(LOGS / "ludus/sick_by_heart")) if f.check == "learned_by_heart"
    ]
    assert (
        "league/bot:objective/win_rate at least 0.71" in found.evidence
        and "at most 0.62" in found.evidence
    )


# -- other formats and names, from the same data ---------------------------------------------------

CLEANRL = {
    "rollout/ep_rew_mean": "charts/episodic_return",
    "rollout/ep_len_mean": "charts/episodic_length",
    "train/learning_rate": "charts/learning_rate",
    "train/value_loss": "losses/value_loss",
    "train/policy_gradient_loss": "losses/policy_loss",
    "train/approx_kl": "losses/approx_kl",
    "train/clip_fraction": "losses/clipfrac",
    "train/explained_variance": "losses/explained_variance",
}


def rows_of(name: str) -> list[dict[str, float]]:
    with open(LOGS / "sb3" / name) as file:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def checks_of(log) -> list[str]:
    return [f.check for f in examine(log) if f.severity == "critical"]


def test_tensorboard_events_with_names_of_cleanrl(tmp_path):
    """Written by TensorBoard's own writer, read by our few lines."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    for i, row in enumerate(rows_of("sick_ppo_learning_rate_tiny.csv")):
        values = [
            Summary.Value(tag=CLEANRL[k], simple_value=v) for k, v in row.items() if k in CLEANRL
        ]
        if "train/entropy_loss" in row:
            values.append(
                Summary.Value(tag="losses/entropy", simple_value=-row["train/entropy_loss"])
            )
        writer.add_event(
            Event(
                wall_time=100.0 + i,
                step=int(row["time/total_timesteps"]),
                summary=Summary(value=values),
            )
        )
    writer.close()
    log = read_log(tmp_path)
    curve = log.get("learner/agent/entropy")
    assert (
        curve is not None
        and curve.values[0] == pytest.approx(0.6931, abs=1e-3)
        and curve.last_step == 25_088
    )
    clock = log.get("progress/seconds")
    assert clock is not None and clock.values[-1] == 48.0
    assert checks_of(log)[0] == "policy_frozen"
    events = next(tmp_path.glob("*tfevents*"))
    events.write_bytes(events.read_bytes()[:-25])  # a run that was killed
    assert checks_of(read_log(events))[0] == "policy_frozen"


@pytest.mark.parametrize("new", [False, True], ids=["old names", "new names"])
def test_result_json_with_names_of_rllib(tmp_path, new):
    lines = []
    for row in rows_of("sick_ppo_learning_rate_tiny.csv"):
        learner = {
            "entropy": -row.get("train/entropy_loss", float("nan")),
            "mean_kl_loss" if new else "kl": row.get("train/approx_kl", float("nan")),
            "vf_loss": row.get("train/value_loss", float("nan")),
        }
        lines.append(
            {
                "env_runners": {"episode_return_mean": row["rollout/ep_rew_mean"]},
                "learners": {"default_policy": learner},
                "num_env_steps_sampled_lifetime": row["time/total_timesteps"],
            }
            if new
            else {
                "episode_reward_mean": row["rollout/ep_rew_mean"],
                "timesteps_total": row["time/total_timesteps"],
                "info": {"learner": {"default_policy": {"learner_stats": learner}}},
            }
        )
    lines = lines[1:]  # the first row has no update yet
    (tmp_path / "result.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    log = read_log(tmp_path)
    assert log.roles() == ["agent"] and checks_of(log)[0] == "policy_frozen"


def test_names_of_ones_own_need_columns(tmp_path):
    rows = rows_of("sick_ppo_entropy_large.csv")[1:]
    lines = ["when;how_good;doubt"]
    lines += [
        f"{r['time/total_timesteps']};{r['rollout/ep_rew_mean']};{-r['train/entropy_loss']}"
        for r in rows
    ]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LudusError, match="only when, how_good, doubt: say what they are"):
        read_log(path)
    columns = {"steps": "when", "return": "how_good", "entropy": "doubt"}
    assert checks_of(read_log(path, columns))[0] == "entropy_stuck"
    with pytest.raises(LudusError, match="no column 'how_god': did you mean 'how_good'"):
        read_log(path, {"return": "how_god"})


# -- bad input -------------------------------------------------------------------------------------


def test_a_log_cut_off_in_the_middle_of_a_line(tmp_path):
    source = (LOGS / "ludus/sick_entropy/metrics.jsonl").read_text()
    (tmp_path / "metrics.jsonl").write_text(source[:-200])
    found = examine(read_log(tmp_path))
    notes = next(f for f in found if f.check == "not_seen").evidence
    assert (
        "1 line(s) cut off" in notes
        and "config.json is missing" in notes
        and "diagnostics.jsonl" in notes
    )
    assert found[0].check == "entropy_stuck"


def test_a_csv_that_is_still_being_written(tmp_path):
    path = tmp_path / "progress.csv"
    path.write_text((LOGS / "sb3/healthy_ppo_acrobot.csv").read_text()[:-30])
    found = examine(read_log(tmp_path))
    assert verdict(found) == "ok" and "cut off" in found[0].evidence


def test_a_run_without_metrics_says_so(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    found = examine(read_log(tmp_path))
    assert [f.check for f in found] == [
        "too_little_data",
        "not_seen",
    ] and "no iteration was finished" in found[1].evidence
    assert verdict(found) == "too_little_data"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.json", '{"values": null, "origins": {}}'),
        ("config.json", "[1, 2]"),
        ("config.json", '{"val'),
        ("game.json", "[]"),
        ("game.json", '{"layout": {"goal_metrics": ["win"]}}'),
        ("game.json", '{"layout": {"goal_metrics": {"win": {}}}}'),
        ("diagnostics.jsonl", "\x00\x07{"),
    ],
)
def test_a_run_folder_of_another_version_says_what_was_not_seen(tmp_path, file, text):
    source = LOGS / "ludus/sick_entropy"
    for name in ("metrics.jsonl", "config.json"):
        (tmp_path / name).write_text((source / name).read_text())
    (tmp_path / file).write_text(text)
    found = examine(read_log(tmp_path))
    assert (
        found[0].check == "entropy_stuck"
        and file in next(f for f in found if f.check == "not_seen").evidence
    )


def test_rows_that_do_not_say_when(tmp_path):
    rows = [
        {"progress/agent_steps": 100, "a/b": 1},
        {"progress/agent_steps": "soon", "a/b": 2},
        {"progress/agent_steps": None, "a/b": 3},
        {"a/b": 4},
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_log(tmp_path).get("a/b").steps.tolist() == [100, 100, 100, 100]


def test_events_tell_of_a_run_whose_metrics_are_missing(tmp_path):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    (tmp_path / "config.json").write_text('{"values": {"game": "x"}, "origins": {}}')
    writer = EventFileWriter(str(tmp_path / "tensorboard"))
    writer.add_event(
        Event(
            step=64,
            summary=Summary(value=[Summary.Value(tag="episode/seeker/return", simple_value=2.0)]),
        )
    )
    writer.close()
    log = read_log(tmp_path)
    assert (
        log.ours
        and log.roles() == ["seeker"]
        and any("events were read in its place" in note for note in log.notes)
    )


def test_an_empty_table(tmp_path):
    (tmp_path / "progress.csv").write_text("")
    found = examine(read_log(tmp_path))
    assert verdict(found) == "too_little_data" and "empty" in found[1].evidence
    (tmp_path / "progress.csv").write_text("timesteps,return\n")  # a run that has just begun
    assert verdict(examine(read_log(tmp_path))) == "too_little_data"


def test_a_run_that_died_early_is_not_called_healthy(tmp_path):
    """Diagnostics and experiments have rows of their own; those of the log are counted. What is
    found all the same is told."""
    source = LOGS / "ludus/healthy_pursuit"
    lines = (source / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "config.json").write_text((source / "config.json").read_text())
    (tmp_path / "diagnostics.jsonl").write_text(
        "\n".join((source / "diagnostics.jsonl").read_text().splitlines() * 3)
    )
    for rows, expected in ((1, "too_little_data"), (6, "too_little_data"), (12, "ok")):
        (tmp_path / "metrics.jsonl").write_text("\n".join(lines[:rows]) + "\n")
        found = examine(read_log(tmp_path))
        assert verdict(found) == expected
        told = [f.evidence for f in found if f.check == "too_little_data"]
        assert told == (
            [f"{rows} row(s) say something about learning, and most checks wait for 12"]
            if rows < 12
            else []
        )
    broken = {**json.loads(lines[5]), "learner/chaser/policy_loss": None}
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines[:5], json.dumps(broken)]) + "\n")
    assert verdict(examine(read_log(tmp_path))) == "critical"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("api.py", "import json\n\n\ndef train(recipe, run):\n    return json\n"),
        ("letter.txt", "Dear reader,\nall is well, and so on.\n"),
        ("config.json", '{"values": {"game": "pursuit"},\n "origins": {}}'),
        ("notes.jsonl", "not a row\nnor this\n"),
    ],
)
def test_a_file_that_is_no_log_is_refused(tmp_path, name, text, capsys):
    (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "run", str(tmp_path / name)])
    told = capsys.readouterr()
    assert stop.value.code == 2 and "is not a training log" in told.err and not told.out


def test_nothing_there(tmp_path):
    with pytest.raises(LudusError, match="there is nothing at"):
        read_log(tmp_path / "nowhere")
    with pytest.raises(LudusError, match="holds no log"):
        read_log(tmp_path)
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "events.out.tfevents.1").write_bytes(b"")
    with pytest.raises(LudusError, match="holds 2 logs: choose one"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([str(LOGS / "sb3/sick_ppo_gamma_zero.csv"), "--json"], 1),
        ([str(LOGS / "sb3/healthy_ppo_acrobot.csv")], 0),
        (
            [
                str(LOGS / "sb3/sick_ppo_reward_flipped.csv"),
                "--columns",
                "goal=rollout/ep_len_mean",
            ],
            1,
        ),
        ([str(LOGS / "sb3/healthy_ppo_acrobot.csv"), "--columns", "goal"], 2),
        (["/no/such/log"], 2),
    ],
)
def test_exit_status(arguments, status, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "run", *arguments])
    assert int(stop.value.code or 0) == status


@pytest.mark.parametrize("name", ["healthy_pursuit", "healthy_mechs", "healthy_cartpole"])
def test_a_role_without_rows_in_some_iterations_is_read(name, tmp_path):
    """Nothing was logged of it then. Checks neither fail nor see what is not there."""
    shutil.copytree(LOGS / "ludus" / name, tmp_path / name)
    path = tmp_path / name / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    role = next(n.split("/")[1] for line in lines for n in line if n.startswith("learner/"))
    own = tuple(
        f"{family}/{role}/" for family in ("learner", "episode", "goal", "action", "strategy")
    )
    less = [
        line if i % 3 else {n: v for n, v in line.items() if not n.startswith(own)}
        for i, line in enumerate(lines)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in less))
    log = read_log(tmp_path / name)
    assert [f.check for f in checked(log) if f.severity == "critical"] == []
    assert not [note for note in log.notes if "could not read" in note]

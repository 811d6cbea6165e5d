"""The run folder, checkpoints that are wrong, fork, init-from, load, eval."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import ludus
from ludus import LudusError, api, cli
from ludus.algorithms.ppo import PPOConfig
from ludus.config import CheckpointConfig, Config, EvalConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.files import read_lines
from ludus.networks.strategy_config import StrategyConfig
from ludus.runs import checkpoint
from ludus.runs.run import Run, split_reference
from ludus.runs.weights import refuse_other_meaning
from ludus.training import start
from ludus.training.display import Silent
from ludus.training.start import create, prepare

TINY = StrategyConfig(
    size="small", entries="other0_", history=8, layers=1, heads=1, width=8, vector=8
)


def config(**changes):
    base = Config(
        game="pursuit",
        game_values={"max_steps": 30},
        envs=8,
        policy=PolicyConfig(hidden=(16,)),
        learner=PPOConfig(rollout=16, epochs=1, minibatches=1),
        train=TrainConfig(total_agent_steps=4000, threads=1),
        eval=EvalConfig(episodes=4, against=("self", "bot:flee")),
        checkpoint=CheckpointConfig(every_agent_steps=1000, every_seconds=None),
        log=LogConfig(diagnostics_every=3),
    )
    for name, value in changes.items():
        setattr(base, name, value)
    return base


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ludus.train(config(), run=tmp_path_factory.mktemp("runs") / "one", quiet=True)


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    return Run(tmp_path / "copy")


def test_whoever_may_read_one_file_of_a_run_may_read_all(run):
    modes = {path.stat().st_mode & 0o777 for path in run.path.rglob("*") if path.is_file()}
    assert len(modes) == 1


def test_the_folder_tells_everything(run):
    names = {p.name for p in run.path.iterdir()}
    assert {
        "config.json",
        "game.json",
        "metrics.jsonl",
        "diagnostics.jsonl",
        "episodes.csv",
        "checkpoints",
        "report.html",
        "best.json",
    } <= names
    assert any("tfevents" in n for n in names)
    data = run.read_json("config.json")
    assert (
        data["values"]["ppo.gae_lambda"] == 0.95 and data["origins"]["ppo.gae_lambda"] == "default"
    )
    assert data["origins"]["envs"] == "recipe" and data["origins"]["train.dtype"] == "derived"
    game = run.read_json("game.json")
    assert (
        game["params"]["speed"] == pytest.approx(0.2)
        and game["layout"]["observation"][0] == "heading_x"
        and game["fingerprint"]
    )
    assert checkpoint.steps(run)[0] == 0


def test_metrics_have_documented_names(run):
    """Every key of a real run matches a line of the table that docs/metrics.md is made from."""
    import re

    from ludus.training.metrics import DIAGNOSTICS, TABLE

    placeholders = {
        "ROLE": "[a-z]+",
        "TERM": "[a-z_]+",
        "GOAL": "[a-z_]+",
        "PHASE": "[a-z_]+",
        "ENTRY": "[a-z_]+",
        "AGAINST": "[a-z_:]+",
        "OPTION": "[a-z_]+",
    }
    patterns = []
    for name in TABLE:
        for word, pattern in placeholders.items():
            name = name.replace(word, pattern)
        patterns.append(re.compile(name + "(_std|_min|_max|_low|_high|_greedy)?$"))
    extra = re.compile(
        r"episode/[a-z]+/(lost|drawn|truncated)$|eval/[a-z_:]+/([a-z]+/)?length(_low|_high|_greedy)?$"
    )
    keys = {k for line in run.metrics() for k in line}
    unknown = [k for k in keys if not any(p.match(k) for p in patterns) and not extra.match(k)]
    assert not unknown
    assert {
        "eval/bot:flee/catch_rate",
        "eval/bot:flee/catch_rate_low",
        "eval/self/survival_greedy",
        "goal/chaser/catch_rate",
    } <= keys
    patterns = [
        re.compile(
            n.replace("ROLE", "[a-z]+").replace("OF", "[a-z_.0-9]+").replace("mean", "(mean|std)")
            + "$"
        )
        for n in DIAGNOSTICS
    ]
    keys = {k for line in read_lines(run.path / "diagnostics.jsonl") for k in line}
    assert keys and [k for k in keys if not any(p.match(k) for p in patterns)] == []


def test_the_names_of_what_will_be_evaluated_are_those_that_are(run):
    from ludus.batches import game_info
    from ludus.training.headline import evaluated

    written = {
        k
        for line in run.metrics()
        for k in line
        if k.startswith("eval/") and not k.endswith(("_low", "_high", "_greedy"))
    }
    assert written == set(evaluated(run.config(), game_info(run.config())))
    assert (
        run.read_json("best.json")["metric"]
        == run.config().checkpoint.best_metric
        == "eval/bot:flee/catch_rate"
    )
    assert run.read_json("config.json")["origins"]["checkpoint.best_metric"] == "derived"


def test_the_metrics_page_is_current():
    from pathlib import Path

    from ludus.training.metrics import table_markdown

    page = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert page.read_text() == table_markdown(), (
        "write it anew: python -c 'from ludus.training.metrics import *; print(table_markdown(), "
        'end="")\' > docs/metrics.md'
    )


def test_tensorboard_shows_the_same_numbers(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run.path), size_guidance={"scalars": 0})
    events.Reload()
    scalars = events.Scalars("learner/chaser/entropy")
    lines = run.metrics()
    assert [s.step for s in scalars] == [line["progress/agent_steps"] for line in lines]
    assert scalars[-1].value == pytest.approx(lines[-1]["learner/chaser/entropy"], rel=1e-5)


def test_an_existing_run_is_never_overwritten(run):
    before = (run.path / "config.json").read_bytes()
    with pytest.raises(LudusError, match=r"exists already.*ludus resume"):
        ludus.train(config(), run=run.path, quiet=True)
    assert (run.path / "config.json").read_bytes() == before


def test_resume_extends_the_budget_and_refuses_anything_else(copy):
    steps = copy.metrics()[-1]["progress/agent_steps"]
    api.resume(copy.path, quiet=True, total_agent_steps=steps + 2000)
    after = Run(copy.path).metrics()
    assert after[-1]["progress/agent_steps"] >= steps + 2000
    assert [m["progress/iteration"] for m in after] == list(range(1, len(after) + 1))
    with pytest.raises(LudusError, match=r"only train.total_agent_steps.*ppo.gamma.*fork"):
        api.resume(copy.path, quiet=True, gamma=0.5)


def test_a_truncated_checkpoint_is_named_and_the_older_one_offered(copy):
    steps = checkpoint.steps(copy)
    file = checkpoint.folder(copy, steps[-1]) / "state.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(
        LudusError, match=rf"state.safetensors is 100 bytes instead of [\d,]+.*@{steps[-2]}"
    ):
        api.resume(copy.path, quiet=True)
    api.resume(f"{copy.path}@{steps[-2]}", quiet=True)
    assert Run(copy.path).metrics()[-1]["progress/agent_steps"] >= 4000


def test_a_foreign_checkpoint_is_refused(copy):
    step = checkpoint.steps(copy)[-1]
    shutil.copy(
        checkpoint.folder(copy, 0) / "policy.safetensors",
        checkpoint.folder(copy, step) / "policy.safetensors",
    )
    with pytest.raises(LudusError, match=r"policy.safetensors is not the file that was written"):
        ludus.load(copy.path)
    manifest = checkpoint.folder(copy, step) / "manifest.json"
    manifest.write_text('{"format": 99}')
    with pytest.raises(LudusError, match="format 99, and this version of Ludus reads 2"):
        ludus.load(copy.path)
    manifest.write_text("{ half")
    with pytest.raises(LudusError, match=r"manifest.json cannot be read"):
        ludus.load(copy.path)


def test_a_reordered_observation_is_moved_by_name(run):
    newest = checkpoint.Checkpoint(run, checkpoint.steps(run)[-1])
    manifest, tensors = newest.manifest, checkpoint.split(newest.tensors("policy"), "chaser")
    now = json.loads(json.dumps(manifest["layout"]))
    now["observation"] = now["observation"][::-1]
    moved = checkpoint.fit_layout(tensors, manifest["layout"], now, "run", "standard")
    policy = ludus.load(run.path, "chaser").policy
    x = torch.randn(1, 3, 11)
    starts = torch.ones(1, 3, dtype=torch.bool)
    before = policy(x, policy.initial_state(3), starts).value
    policy.load_state_dict(moved)
    assert torch.allclose(
        policy(x.flip(-1), policy.initial_state(3), starts).value, before, atol=1e-5
    )
    now["observation"][0] = "something_else"
    with pytest.raises(LudusError, match="something_else"):
        checkpoint.fit_layout(tensors, manifest["layout"], now, "run", "standard")
    with pytest.raises(LudusError, match="other actions"):
        checkpoint.fit_layout(
            tensors, manifest["layout"], {**manifest["layout"], "action": {}}, "run", "standard"
        )


def test_disk_full_while_saving_loses_nothing(copy, monkeypatch):
    before = checkpoint.steps(copy)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(LudusError, match=r"No space left.*earlier checkpoints are intact"):
        api.resume(copy.path, quiet=True, total_agent_steps=7000)
    monkeypatch.undo()
    assert checkpoint.steps(copy) == before
    api.resume(copy.path, quiet=True)
    assert Run(copy.path).metrics()[-1]["progress/agent_steps"] >= 7000


def test_an_observation_too_large_to_be_normalised_stops_training_by_name(tmp_path, monkeypatch):
    """Its square is no float any more: it would be divided by infinity and never be seen again."""
    from ludus.sim import Batch

    step = Batch.step

    def huge(self):
        step(self)
        if self["step"][0] == 3:
            self.arrays["observation"][:, :, 4] = 1e20

    monkeypatch.setattr(Batch, "step", huge)
    with pytest.raises(
        LudusError, match=r"is as large as 1e\+20, too large to be normalised: scale or clip it"
    ) as stopped:
        ludus.train(config(), run=tmp_path / "huge", quiet=True)
    run = Run(tmp_path / "huge")
    good = checkpoint.steps(run)[-1]
    assert f"@{good}" in str(stopped.value) and "learning rate" not in str(stopped.value)
    for name, tensor in load_file(checkpoint.folder(run, good) / "policy.safetensors").items():
        assert torch.isfinite(tensor).all(), name


def test_what_is_not_finite_is_never_committed(tmp_path, monkeypatch):
    """Also what no metric shows."""

    def spoil(trainer):
        next(iter(trainer.algorithm.policies.values())).value_norm.mean[...] = float("inf")

    trainer = create(tmp_path / "run", *prepare(config()), display=Silent())
    before = checkpoint.steps(trainer.run)
    spoil(trainer)
    trainer.progress.agent_steps += 1
    with pytest.raises(LudusError, match=r"value_norm\.mean of the policy is not finite"):
        trainer.save()
    trainer.run.close()
    assert checkpoint.steps(trainer.run) == before


def test_nan_stops_training_with_its_first_tensor(tmp_path, monkeypatch):
    from ludus.sim import Batch

    step, count = Batch.step, 0

    def poisoned(self):
        nonlocal count
        step(self)
        count += self.num_envs == 8
        if count == 60 and self.num_envs == 8:
            self.arrays["observation"][3, 0, 4] = np.nan

    monkeypatch.setattr(Batch, "step", poisoned)
    with pytest.raises(
        LudusError,
        match=r"observation entry 'other0_left' of env 3 .*last good checkpoint is .*@\d+",
    ):
        ludus.train(config(), run=tmp_path / "nan", quiet=True)


def test_init_from_takes_weights_and_starts_anew(run, tmp_path):
    made = start.train(config(), {}, tmp_path / "child", quiet=True, init_from=f"{run.path}@best")
    first = load_file(checkpoint.folder(made, 0) / "policy.safetensors")
    best = load_file(checkpoint.folder(run, checkpoint.find(run, "best")) / "policy.safetensors")
    assert all(torch.equal(first[n], best[n]) for n in best)
    assert made.metrics()[0]["progress/iteration"] == 1
    part = start.train(
        config(),
        {},
        tmp_path / "part",
        quiet=True,
        init_from=str(run.path),
        init_modules=("encoder",),
    )
    newest = load_file(checkpoint.folder(run, checkpoint.steps(run)[-1]) / "policy.safetensors")
    some = load_file(checkpoint.folder(part, 0) / "policy.safetensors")
    assert torch.equal(
        some["chaser/actor.network.encoder.0.weight"],
        newest["chaser/actor.network.encoder.0.weight"],
    )
    assert not torch.equal(some["chaser/action_head.weight"], newest["chaser/action_head.weight"])
    with pytest.raises(LudusError, match=r"no module .* matches nonsense"):
        start.train(
            config(),
            {},
            tmp_path / "none",
            quiet=True,
            init_from=str(run.path),
            init_modules=("nonsense",),
        )
    assert not (tmp_path / "none").exists()
    with pytest.raises(LudusError, match=r"\[8, 16\] but this policy has \[8, 24\]"):
        start.train(
            config(policy=PolicyConfig(hidden=(24,))),
            {},
            tmp_path / "other",
            quiet=True,
            init_from=str(run.path),
        )


def test_weights_that_would_mean_something_else_are_refused(run, tmp_path):
    """The shapes are the same: without this a policy would be carried over in silence and play at
    random."""
    other = config(policy=PolicyConfig(hidden=(16,), activation="relu"))
    told = (
        r"@\d+ was trained with policy.activation tanh, and this run has relu: .* add "
        r"--policy.activation tanh"
    )
    with pytest.raises(LudusError, match=told):
        start.train(other, {}, tmp_path / "relu", quiet=True, init_from=str(run.path))
    changed = start.forkable(run.path)
    changed.policy.activation = "relu"
    with pytest.raises(LudusError, match=told):
        start.fork(run.path, changed, {}, tmp_path / "fork", quiet=True)
    with pytest.raises(LudusError, match=told):
        start.train(
            other,
            {},
            tmp_path / "relu",
            quiet=True,
            init_from=str(run.path),
            init_modules=("actor",),
        )
    assert not (tmp_path / "relu").exists() and not (tmp_path / "fork").exists()
    start.train(
        other,
        {},
        tmp_path / "part",
        quiet=True,
        init_from=str(run.path),
        init_modules=("action_head",),
    )


def test_a_network_with_more_parts_begins_with_what_another_has(run, tmp_path):
    """As a fighter that then learns to recognise its opponents. What is new is never filled in
    silence."""
    larger = config(policy=PolicyConfig(hidden=(16,), network="strategy", network_settings=TINY))
    told = r"it lacks actor\.network\.seen\.history.*: ludus train … --init-from .*@\d+ --init-modules (.*)"
    with pytest.raises(LudusError, match=told) as refused:
        start.train(larger, {}, tmp_path / "larger", quiet=True, init_from=str(run.path))
    modules = tuple(str(refused.value).rsplit("--init-modules ", 1)[1].split())
    made = start.train(
        larger, {}, tmp_path / "larger", quiet=True, init_from=str(run.path), init_modules=modules
    )
    theirs = load_file(checkpoint.folder(run, checkpoint.steps(run)[-1]) / "policy.safetensors")
    ours = load_file(checkpoint.folder(made, 0) / "policy.safetensors")
    assert (
        all(torch.equal(ours[name], theirs[name]) for name in theirs)
        and ours.keys() > theirs.keys()
    )
    joins = "chaser/actor.network.seen.history.into.weight"
    assert not ours[joins].any(), (
        "it plays as the other did: a vector that means nothing yet adds nothing"
    )
    learned = load_file(checkpoint.folder(made, checkpoint.steps(made)[-1]) / "policy.safetensors")
    assert learned[joins].any(), "and it is learned what to add"
    again = start.train(
        larger,
        {},
        tmp_path / "again",
        quiet=True,
        init_from=str(made.path),
        init_modules=("history",),
    )
    assert torch.equal(
        load_file(checkpoint.folder(again, 0) / "policy.safetensors")[joins], learned[joins]
    )
    with pytest.raises(
        LudusError,
        match=r"it has actor\.network\.seen\.history.*, which this one lacks; use the same policy settings",
    ):
        start.train(config(), {}, tmp_path / "smaller", quiet=True, init_from=str(made.path))
    with pytest.raises(LudusError, match=r"policy.strategy.history 8, and this run has 9"):
        larger.policy.network_settings.history = 9
        start.train(
            larger,
            {},
            tmp_path / "longer",
            quiet=True,
            init_from=str(made.path),
            init_modules=("history",),
        )


def test_the_steps_that_a_strategy_encoder_looks_at_are_part_of_its_meaning():
    theirs = Config(
        game="brawl",
        policy=PolicyConfig(network="strategy", network_settings=StrategyConfig(size="small")),
    )
    saved = SimpleNamespace(where="here", run=SimpleNamespace(settings=lambda: theirs))
    encoder = ["actor.network.seen.history.embed.weight"]
    # what small says
    refuse_other_meaning(
        saved,
        PolicyConfig(network="strategy", network_settings=StrategyConfig(size="small", stride=5)),
        encoder,
    )
    # the encoder was not taken over
    refuse_other_meaning(saved, PolicyConfig(), ["actor.network.encoder.0.weight"])
    with pytest.raises(
        LudusError,
        match=r"policy.strategy.stride 5, and this run has 2: .* add --policy.strategy.stride 5",
    ):
        refuse_other_meaning(
            saved,
            PolicyConfig(
                network="strategy", network_settings=StrategyConfig(size="small", stride=2)
            ),
            encoder,
        )


def test_fork_takes_the_weights_and_really_plays_the_changed_game(run, tmp_path):
    """New rewards and parameters must be in the simulator, not only in the files."""
    changed = start.forkable(run.path)
    changed.learner.entropy = 0.05
    changed.game_values |= {"speed": 0.05, "reward.near": 0.0}
    made = start.fork(run.path, changed, {}, tmp_path / "forked", quiet=True)
    assert made.read_json("config.json")["forked_from"].startswith(str(run.path))
    first = load_file(checkpoint.folder(made, 0) / "policy.safetensors")
    source = load_file(checkpoint.folder(run, checkpoint.steps(run)[-1]) / "policy.safetensors")
    assert all(torch.equal(first[n], source[n]) for n in source)
    state = load_file(checkpoint.folder(made, checkpoint.steps(made)[-1]) / "state.safetensors")
    layout = made.read_json("game.json")
    assert layout["params"]["speed"] == pytest.approx(0.05) and layout["rewards"]["near"] == 0.0
    assert torch.allclose(state["sim/float_params"][:, 0], torch.tensor(0.05))
    assert (state["sim/weights"][:, 2] == 0).all()
    assert made.metrics()[0]["progress/iteration"] == 1 and checkpoint.find(
        made, "best"
    ) in checkpoint.steps(made)


def test_what_was_derived_is_derived_anew_for_a_fork(run):
    data = run.read_json("config.json")
    assert data["origins"]["ppo.bptt"] == "derived" and data["values"]["ppo.bptt"] == 1
    base = start.forkable(run.path)
    assert base.learner.bptt is None and base.train.dtype is None and base.train.threads == 1


def test_resume_refuses_before_it_touches_anything(copy):
    before = sorted(p.name for p in copy.path.rglob("*"))
    for budgets, words in (
        ({}, "has spent its budget"),
        (dict(total_agent_steps=-5), "-5"),
        (dict(total_agent_steps=0), "=0"),
    ):
        with pytest.raises(LudusError, match=words):
            api.resume(copy.path, quiet=True, **budgets)
    steps = checkpoint.steps(copy)
    damaged = checkpoint.folder(copy, steps[1]) / "state.safetensors"
    damaged.write_bytes(b"x")
    with pytest.raises(LudusError, match="1 bytes instead of"):
        api.resume(f"{copy.path}@{steps[1]}", quiet=True)
    assert checkpoint.steps(copy) == steps
    assert sorted(p.name for p in copy.path.rglob("*") if p.name != "lock") == [
        n for n in before if n != "lock"
    ]


@pytest.mark.parametrize("name", ["lock", "replays"])
def test_what_stands_in_the_place_of_a_file_or_folder_is_named(copy, name):
    """A pipe, which nobody writes into or reads."""
    shutil.rmtree(copy.path / name, ignore_errors=True)
    (copy.path / name).unlink(missing_ok=True)
    os.mkfifo(copy.path / name)
    with pytest.raises(LudusError, match=rf"{name}.*(no ordinary file|File exists)"):
        api.resume(copy.path, quiet=True, total_agent_steps=9000)


def test_a_folder_that_may_not_be_written_to_is_refused_first(copy, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(LudusError, match=r"may not be written to.*ludus fork"):
        api.resume(copy.path, quiet=True, total_agent_steps=9000)


def test_a_run_without_a_report_gets_one(copy):
    """It was killed while its report was written."""
    (copy.path / "report.html").unlink()
    api.resume(copy.path, quiet=True)
    assert (copy.path / "report.html").exists()
    with pytest.raises(LudusError, match="has spent its budget"):
        api.resume(copy.path, quiet=True)


def test_a_name_that_is_too_long_is_one_sentence(capsys):
    for arguments in (["eval", "n" * 300], ["train", "pursuit", "--quiet", "--run", "n" * 250]):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 2 and "File name too long" in capsys.readouterr().err


def test_a_payoff_that_cannot_be_read_costs_only_itself(copy):
    (copy.path / "payoff.json").write_text("")
    (copy.path / "report.html").unlink()
    api.resume(f"{copy.path}@0", quiet=True)
    assert "payoff.json cannot be read" in (copy.path / "report.html").read_text()


def test_a_refusal_lets_go_of_the_run(copy):
    newest = checkpoint.folder(copy, checkpoint.steps(copy)[-1])
    (newest / "state.safetensors").write_bytes(b"x")
    with pytest.raises(LudusError, match="bytes instead of") as refused:
        api.resume(copy.path, quiet=True, total_agent_steps=9000)
    assert refused.value.__traceback__ is not None  # as in a notebook, which keeps it
    older = checkpoint.steps(copy)[-2]
    api.resume(f"{copy.path}@{older}", quiet=True)


def test_an_older_checkpoint_that_is_damaged_hinders_nobody(copy, monkeypatch):
    """Which snapshots it refers to is not known: all stay."""
    steps = checkpoint.steps(copy)
    (checkpoint.folder(copy, steps[0]) / "manifest.json").write_text("{")
    snapshot = copy.path / "snapshots" / "000000000001.safetensors"
    snapshot.parent.mkdir()
    snapshot.write_bytes(b"x")
    api.resume(f"{copy.path}@{steps[1]}", quiet=True)
    assert Run(copy.path).state()[0] == "finished" and snapshot.exists()


def test_resume_refuses_what_a_new_run_refuses(copy):
    """Before anything is cut back: here a sink whose package is not installed."""
    before = (copy.path / "metrics.jsonl").read_bytes()
    data = copy.read_json("config.json")
    data["values"]["log.wandb"] = "project"
    (copy.path / "config.json").write_text(json.dumps(data))
    with pytest.raises(LudusError, match="wandb"):
        api.resume(f"{copy.path}@0", quiet=True)
    assert (copy.path / "metrics.jsonl").read_bytes() == before
    assert Run(copy.path).state()[0] == "finished"


def test_a_run_of_a_gpu_is_not_told_to_use_another_device(copy, monkeypatch):
    data = copy.read_json("config.json")
    data["values"]["device"] = "cuda"
    (copy.path / "config.json").write_text(json.dumps(data))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(LudusError, match=r"trained on cuda.*ludus fork .* --device cpu"):
        api.resume(copy.path, quiet=True, total_agent_steps=9000)


def test_a_run_in_training_is_not_resumed(copy):
    copy.lock()
    with pytest.raises(LudusError, match="being trained by another process"):
        api.resume(copy.path, quiet=True, total_agent_steps=9000)
    copy.close()


def test_changed_rules_are_not_resumed_silently(copy, monkeypatch):
    monkeypatch.setattr("ludus.games.pursuit.rules.TURN", 0.3)
    with pytest.raises(LudusError, match=r"rules changed since .*ludus fork"):
        api.resume(copy.path, quiet=True, total_agent_steps=9000)


def test_logs_after_a_resume_from_the_first_checkpoint(copy):
    api.resume(f"{copy.path}@0", quiet=True)
    lines = (copy.path / "episodes.csv").read_text().splitlines()
    assert (
        lines[0].startswith("agent_steps,env,role")
        and sum(line.startswith("agent_steps") for line in lines) == 1
    )
    assert Run(copy.path).metrics()[0]["progress/iteration"] == 1


def test_the_best_checkpoint_counts_every_role_and_ties_go_to_the_newer(run):
    best = run.read_json("best.json")
    # the only goal against a strong bot that this run evaluates
    assert best["metric"] == "eval/bot:flee/catch_rate"
    values = {
        m["progress/agent_steps"]: m[best["metric"]] for m in run.metrics() if best["metric"] in m
    }
    assert best["step"] == max(
        step for step, value in values.items() if value == max(values.values())
    )


def test_the_best_checkpoint_is_the_one_that_the_newest_names(copy):
    """Also where best.json is from before: the process died between the two."""
    steps = checkpoint.steps(copy)
    named = checkpoint.read_manifest(copy, steps[-1])["progress"]["best"]["step"]
    (copy.path / "best.json").write_text('{"metric": "eval/self/return", "value": 0, "step": 1}')
    assert checkpoint.find(copy, "best") == named
    resumed = api.resume(copy.path, quiet=True, total_agent_steps=steps[-1] + 1000)
    assert (
        resumed.read_json("best.json")["step"]
        == checkpoint.find(resumed, "best")
        in checkpoint.steps(resumed)
    )


def test_a_best_checkpoint_that_is_gone_is_forgotten_when_an_older_one_is_resumed(copy):
    steps = checkpoint.steps(copy)
    path = checkpoint.folder(copy, steps[1]) / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["progress"]["best"] = {
        "metric": "eval/bot:flee/catch_rate",
        "value": 2.0,
        "step": steps[1] - 1,
    }
    del manifest["sha256"]
    path.write_text(json.dumps(checkpoint.sealed(manifest)))
    resumed = api.resume(f"{copy.path}@{steps[1]}", quiet=True, total_agent_steps=steps[1] + 2000)
    assert checkpoint.find(resumed, "best") in checkpoint.steps(resumed)


def test_short_episodes_do_not_count_more_often():
    """Env i's episodes last i + 1 steps; any number of episodes must give whole rounds in env
    order."""
    from types import SimpleNamespace

    from ludus.play.evaluate import play

    class Clockwork:
        num_envs = 10
        layout = SimpleNamespace(goals=[], num_agents=1)

        def __init__(self):
            self.time = np.zeros(10, int)

        def step(self):
            self.time = np.where(self.counted, 0, self.time) + 1

        @property
        def counted(self):
            return self.time == np.arange(1, 11)

        def numpy(self, name):
            return self.counted if name == "counted" else self.time[:, None]

    result = play(Clockwork(), [], 25, 0)["length"][:, 0]
    assert result.tolist() == [*range(1, 11), *range(1, 11), *range(1, 6)]


def test_load_and_act(run):
    agent = ludus.load(run.path, role="runner")
    action, state = agent.act(np.zeros(11, np.float32))
    assert (
        action["continuous"].shape == (1,)
        and action["binary"].shape == (1,)
        and state.shape == (1, 0)
    )
    many, _ = agent.act(np.zeros((5, 11), np.float32), greedy=True)
    assert many["continuous"].shape == (5, 1) and np.abs(many["continuous"]).max() <= 1
    with pytest.raises(LudusError, match="no role 'runer': did you mean 'runner'"):
        ludus.load(run.path, role="runer")


def test_an_evaluation_leaves_threads_as_they_were_and_names_runs_alike(run, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = [ludus.evaluate(run.path, name, 2) for name in (str(run.path), f"run:{run.path}")]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert found[0]["metrics"] == found[1]["metrics"] and "catch_rate" in found[0]["metrics"]


def test_evaluation_counts_every_env_equally_and_repeats(run):
    result = ludus.evaluate(run.path, "bot:flee", 300)
    assert (
        result["metrics"]["catch_rate"]["low"]
        <= result["metrics"]["catch_rate"]["mean"]
        <= result["metrics"]["catch_rate"]["high"]
    )
    assert (
        set(result["metrics"]) >= {"catch_rate", "chaser/return"}
        and "survival" not in result["metrics"]
    )
    assert ludus.evaluate(run.path, "bot:flee", 300) == result
    with pytest.raises(LudusError, match="bot:fle"):
        ludus.evaluate(run.path, "bot:fle", 10)


def test_references_that_lead_nowhere(run, tmp_path):
    with pytest.raises(LudusError, match="no run at"):
        ludus.load(tmp_path / "nothing")
    with pytest.raises(LudusError, match=r"no checkpoint @123: the nearest is @\d+"):
        ludus.load(f"{run.path}@123")


def test_time_budget(tmp_path):
    made = ludus.train(
        config(train=TrainConfig(total_seconds=0.5, threads=1)), run=tmp_path / "timed", quiet=True
    )
    assert 0.5 <= made.metrics()[-1]["progress/seconds"] < 5


def test_a_folder_may_have_an_at_sign_in_its_name(copy, tmp_path):
    odd = tmp_path / "me@home"
    shutil.copytree(copy.path, odd)
    step = checkpoint.steps(copy)[-1]
    assert split_reference(f"{odd}") == (odd, None) and split_reference(f"{odd}@{step}") == (
        odd,
        str(step),
    )
    assert split_reference(f"{odd}@best") == (odd, "best") and split_reference("runs/new@best") == (
        Path("runs/new"),
        "best",
    )
    assert ludus.load(f"{odd}@{step}").role == ludus.load(odd).role


def test_bytes_that_are_no_text_are_one_sentence(copy):
    for name in ("config.json", "checkpoints"):
        path = (
            copy.path / name
            if name.endswith("json")
            else checkpoint.folder(copy, checkpoint.steps(copy)[-1]) / "manifest.json"
        )
        before = path.read_bytes()
        path.write_bytes(b"\xff\xfe" + before)
        with pytest.raises(LudusError, match="cannot be read"):
            ludus.load(copy.path)
        path.write_bytes(before)
    (copy.path / "metrics.jsonl").write_bytes(
        b"\xff\n" + (copy.path / "metrics.jsonl").read_bytes()
    )
    assert copy.metrics()

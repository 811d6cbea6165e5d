"""What is claimed, and how it is shown. Every experiment trains with the command a user would type,
three seeds each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ludus.recipes.brawl import STYLES


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One `ludus eval` of the trained run, and the number that is read from it."""

    name: str
    metric: str
    against: str = "self"
    """As for ludus eval; several with spaces between."""
    checkpoint: str = ""
    """Empty: the last one; @best: the one that evaluations during training chose, on neither these
    tracks nor those trained on."""
    episodes: int = 256
    options: tuple[str, ...] = ()
    bar: str = ""
    """What must hold, as '>= 450' or '< 100'; empty: reported only."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    recipe: str
    options: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    after: str = ""
    """The experiment whose run with the same seed it begins with, as with --init-from."""
    seeds: tuple[int, ...] = (0, 1, 2)
    device: str = "cpu"
    claim: str = ""
    tags: tuple[str, ...] = field(default=())


PROBES = "gym:ludus.examine.probes:"


def _returns(bar: str) -> tuple[Evaluation, ...]:
    return (
        Evaluation(name="sampled", metric="return", episodes=100, bar=bar),
        Evaluation(name="greedy", metric="return", episodes=100, options=("--greedy",)),
    )


_MEMORY = ("--policy.memory", "lstm", "--policy.hidden", "64", "--policy.memory-size", "64")


def _racing(metric: str, bar: str = "") -> Evaluation:
    name = metric.removeprefix("self/").replace("_better_than/bot:", " better than the ")
    return Evaluation(
        name=name,
        metric=metric,
        against="self bot:driver",
        checkpoint="@best",
        options=("--greedy",),
        bar=bar,
    )


_RACING = (
    _racing("self/finish", ">= 0.9"),
    _racing("self/time_better_than/bot:driver", ">= 0.6"),
    _racing("self/time"),
    _racing("bot:driver/time"),
)

_FOUR_MINUTES = ("--train.total-seconds", "240")  # what each switch is worth shows early


def _minutes(count: int) -> tuple[str, ...]:
    """As many agent-steps as hide_and_seek makes in that time on two idle cores (`ludus bench train
    --recipe hide_and_seek`: at least 37,000 a second), so that runs beside each other give the
    same."""
    return (
        "--train.total-agent-steps",
        str(count * 60 * 37_000),
        "--train.total-seconds",
        "7200",
        "--eval.every-seconds",
        "240",
    )


def _steps(millions: float) -> tuple[str, ...]:
    """A budget in agent-steps alone, so that runs that share a GPU give what one alone gives."""
    return (
        "--train.total-agent-steps",
        str(int(millions * 1_000_000)),
        "--train.total-seconds",
        "7200",
    )


_ORIGINAL = (
    Evaluation(
        name="the hider bot's hiders",
        metric="catch_rate",
        against="bot:hider",
        episodes=512,
        bar=">= 0.85",
    ),
    Evaluation(
        name="random hiders", metric="catch_rate", against="bot:random", episodes=512, bar=">= 0.97"
    ),
)
_MANY_ENVS = (
    "--envs",
    "32768",
    "--ppo.rollout",
    "32",
    "--ppo.epochs",
    "4",
    "--ppo.minibatches",
    "16",
    "--league.mix",
    "self 95, pool 5",
    "--policy.separate-value",
    "False",
)

UNSEEN = ("aggressive", "defensive", "kiter", "parry", "pounce", "switcher")
_MET = {"constant": ">= 0.99", "based": ">= 0.95", "random": ">= 0.98"}


def _brawl(bars: dict[str, str], unseen: bool = True) -> tuple[Evaluation, ...]:
    """Wins of whole matches, draws counted apart, sampled actions."""
    everyone = (*bars, *(UNSEEN if unseen else ()))
    against = " ".join(f"bot:{name}" for name in everyone)
    return tuple(
        Evaluation(
            name=name, metric=f"bot:{name}/win_rate", against=against, bar=bars.get(name, ">= 0.7")
        )
        for name in everyone
    )


def _silenced(episodes: int) -> tuple[Evaluation, ...]:
    """What messages are worth: in the same worlds with and without them."""
    return tuple(
        Evaluation(
            name=name,
            metric=f"heard_minus_silenced/{metric}",
            against="bot:objective",
            episodes=episodes,
            options=("--silence",),
        )
        for name, metric in (
            ("wins lost without messages", "win_rate"),
            ("return lost without messages", "return"),
        )
    )


_TEN = (
    Evaluation(name="objective", metric="win_rate", against="bot:objective", bar=">= 0.9"),
    *_silenced(256),
)

_RECOGNISED = tuple(
    Evaluation(
        name=name,
        metric=name,
        against=" ".join(f"bot:{style}" for style in STYLES),
        episodes=64,
        options=("--analyse",),
        bar=bar,
    )
    for name, bar in (
        ("named_from_one_window", ">= 0.7"),
        ("named_from_several_windows", ">= 0.85"),
        ("switch_ratio", ">= 3"),
        ("win_rate", ""),
        ("win_rate_shuffled", ""),
        ("gain", ""),
    )
)

# all that a run of brawl has: the encoder is new
_FIGHTER = (
    "--init-modules",
    "action_head",
    "actor",
    "log_std",
    "observation_norm",
    "value_head",
    "value_norm",
)

_GPU = ("--train.total-seconds", "340", "--eval.every-seconds", "170")

# One room, two agents, 40 steps. A mine needs its whole cooldown to the first ore: 27 of 28 tasks
# are too short for any.
_HOPELESS = (
    "--envs",
    "64",
    "--train.threads",
    "1",
    "--train.total-agent-steps",
    "1000000",
    "--ppo.rollout",
    "32",
    "--ppo.minibatches",
    "8",
    "--policy.hidden",
    "64",
    "--game.population",
    "2",
    "--game.side",
    "21",
    "--game.room",
    "9",
    "--game.converters",
    "8",
    "--game.mines",
    "3",
    "--game.generators",
    "2",
    "--game.altars",
    "2",
    "--game.blocks",
    "0",
    "--game.walls",
    "0",
    "--game.max-steps",
    "40",
    "--game.start-cooling",
    "1",
    "--game.mine-cooldown",
    "5",
    "--game.generator-cooldown",
    "5",
    "--game.altar-cooldown",
    "5",
    "--curriculum.tasks.vary.mine-cooldown",
    "5 to 1000",
    "--curriculum.tasks.pool",
    "50",
    "--curriculum.tasks.goal",
    "ore",
    "--eval.every-agent-steps",
    "250000",
    "--log.tensorboard",
    "False",
)
_ORE = (Evaluation(name="the task that can be learned", metric="ore"),)

EXPERIMENTS: dict[str, Experiment] = {
    "cartpole": Experiment(
        recipe="gym:CartPole-v1",
        options=("--train.total-agent-steps", "100000"),
        evaluations=_returns(">= 500"),
        claim="CartPole-v1 solved within 100k steps",
        tags=("known",),
    ),
    "cartpole_blind_lstm": Experiment(
        recipe=PROBES + "CartPoleBlind-v0",
        options=("--train.total-agent-steps", "100000", *_MEMORY),
        evaluations=_returns(">= 450"),
        claim="CartPole without velocities needs memory: LSTM",
        tags=("known",),
    ),
    "cartpole_blind_none": Experiment(
        recipe=PROBES + "CartPoleBlind-v0",
        options=("--train.total-agent-steps", "100000"),
        evaluations=_returns("< 100"),
        claim="CartPole without velocities needs memory: none",
        tags=("known",),
    ),
    "cartpole_short": Experiment(
        recipe=PROBES + "CartPoleShort-v0",
        options=("--train.total-agent-steps", "100000"),
        evaluations=(
            Evaluation(
                name="on the full task",
                metric="return",
                episodes=100,
                options=("--on", "gym:CartPole-v1"),
                bar=">= 200",
            ),
        ),
        claim="Trained on 50-step episodes, balances for longer: truncation bootstraps",
        tags=("known",),
    ),
    "acrobot": Experiment(
        recipe="gym:Acrobot-v1",
        options=("--train.total-agent-steps", "150000"),
        evaluations=_returns(">= -85"),
        claim="Acrobot-v1 within 150k steps",
        tags=("known",),
    ),
    "lunarlander": Experiment(
        recipe="gym:LunarLander-v3",
        options=(
            "--train.total-agent-steps",
            "1000000",
            "--ppo.gamma",
            "0.999",
            "--ppo.gae-lambda",
            "0.98",
            "--envs",
            "16",
            "--ppo.rollout",
            "512",
            "--ppo.minibatches",
            "32",
            "--ppo.epochs",
            "4",
            "--ppo.entropy",
            "0.01",
            "--ppo.learning-rate",
            "6e-4 -> 0",
        ),
        evaluations=_returns(">= 200"),
        claim="LunarLander-v3 within 1M steps",
        tags=("known",),
    ),
    "pendulum": Experiment(
        recipe="gym:Pendulum-v1",
        options=("--train.total-agent-steps", "200000", "--train.threads", "1"),
        evaluations=_returns(">= -250"),
        claim="Pendulum-v1 swings up within 200k steps (random: -1,220)",
        tags=("others",),
    ),
    "taxi": Experiment(
        recipe="gym:Taxi-v4",
        options=(
            "--train.total-agent-steps",
            "200000",
            "--ppo.entropy",
            "0.01",
            "--train.threads",
            "1",
        ),
        evaluations=_returns(">= 6"),
        claim="Taxi-v4, a discrete observation, within 200k steps (random: -193; the best "
        "possible: about 8)",
        tags=("others",),
    ),
    "simple_tag": Experiment(
        recipe="pettingzoo:mpe2.simple_tag_v3",
        options=("--train.total-agent-steps", "400000", "--train.threads", "1"),
        evaluations=(
            Evaluation(
                name="adversaries, prey at random", metric="adversary/return", against="bot:random"
            ),
            Evaluation(
                name="prey, adversaries at random", metric="agent/return", against="bot:random"
            ),
        ),
        claim="Three adversaries learn to chase while their prey learns to flee (adversaries at "
        "random: 4.2)",
        seeds=(0,),
        tags=("others",),
    ),
    "speaker_listener": Experiment(
        recipe="pettingzoo:mpe2.simple_speaker_listener_v4",
        options=("--train.total-agent-steps", "400000", "--train.threads", "1"),
        evaluations=(
            Evaluation(name="listener", metric="listener/return", bar=">= -20"),
            Evaluation(name="speaker", metric="speaker/return", bar=">= -20"),
        ),
        claim="Two roles with different observations and actions learn to talk (random: -41, "
        "standing still: -27)",
        seeds=(0,),
        tags=("others",),
    ),
    "cartpole_rainbow": Experiment(
        recipe="gym:CartPole-v1",
        options=(
            "--algorithm",
            "rainbow",
            "--train.total-agent-steps",
            "100000",
            "--eval.every-agent-steps",
            "10000",
        ),
        evaluations=tuple(replace(e, checkpoint="@best") for e in _returns(">= 500")),
        claim="CartPole-v1 by Rainbow within 100k steps",
        tags=("rainbow",),
    ),
    "cartpole_reinforce": Experiment(
        recipe="gym:CartPole-v1",
        options=(
            "--algorithm",
            "examples.reinforce:Reinforce",
            "--train.total-agent-steps",
            "300000",
        ),
        evaluations=_returns(">= 475"),
        claim="CartPole-v1 by an algorithm from outside of the package, in 300k steps",
        tags=("own",),
    ),
    "minatar_breakout": Experiment(
        recipe="gym:minatar.gym:MinAtar/Breakout-v1",
        options=(
            "--algorithm",
            "rainbow",
            "--train.total-agent-steps",
            "1000000",
            "--envs",
            "16",
            "--rainbow.replay",
            "100000",
            "--rainbow.replay-ratio",
            "8",
            "--rainbow.epsilon-over",
            "100000",
            "--policy.normalise-observation",
            "False",
        ),
        evaluations=_returns(""),
        claim="MinAtar's Breakout after 1 M steps",
        tags=("rainbow",),
    ),
    "racing_lidar": Experiment(
        recipe="racing_lidar",
        evaluations=_RACING,
        claim="Rainbow drives unseen tracks from lidar within ten minutes on two cores",
        tags=("racing",),
    ),
    "racing_lidar_full": Experiment(
        recipe="racing_lidar",
        options=_FOUR_MINUTES,
        evaluations=_RACING,
        claim="racing_lidar as it is shipped, in four minutes",
        tags=("ablation",),
    ),
    "racing_lidar_one_step": Experiment(
        recipe="racing_lidar",
        options=("--rainbow.n-step", "1", *_FOUR_MINUTES),
        evaluations=_RACING,
        claim="racing_lidar without n-step targets",
        tags=("ablation",),
    ),
    "racing_lidar_prioritised": Experiment(
        recipe="racing_lidar",
        options=("--rainbow.prioritised", "True", *_FOUR_MINUTES),
        evaluations=_RACING,
        claim="racing_lidar with prioritised replay, which the recipe leaves out",
        tags=("ablation",),
    ),
    "racing_lidar_expectation": Experiment(
        recipe="racing_lidar",
        options=("--rainbow.iqn", "False", *_FOUR_MINUTES),
        evaluations=_RACING,
        claim="racing_lidar without quantiles",
        tags=("ablation",),
    ),
    "pursuit": Experiment(
        recipe="pursuit",
        evaluations=(
            Evaluation(name="runners that flee", metric="catch_rate", against="bot:flee"),
        ),
        claim="The example game, a minute and a half on two cores",
        tags=("shipped",),
    ),
    "racing_dqn": Experiment(
        recipe="racing_dqn",
        evaluations=(_racing("self/finish"),),
        claim="Plain DQN drives the oval, three minutes on two cores",
        tags=("shipped",),
    ),
    "racing_seed_working": Experiment(
        recipe="racing_seed_working",
        evaluations=(_racing("self/finish"),),
        claim="The settings of the original that learned: in five minutes they finish few laps",
        tags=("shipped",),
    ),
    "brawl_strategy_full": Experiment(
        recipe="brawl_strategy_full",
        # no evaluations: on a CPU, where they play, a match takes this encoder minutes
        options=("--train.total-seconds", "600"),
        device="cuda",
        claim="Ten minutes of a shared H200 with the full strategy encoder",
        tags=("shipped", "gpu"),
    ),
    "brawl_strategy": Experiment(
        recipe="brawl_strategy",
        evaluations=_brawl({"constant": "", "based": ""}, unseen=False),
        claim="Fifteen minutes on two cores with the small strategy encoder",
        tags=("shipped",),
    ),
    "brawl_fighter": Experiment(
        recipe="brawl",
        options=("--train.total-seconds", "240"),
        claim="Four minutes on two cores, to begin brawl_strategy with",
        tags=("recognition",),
    ),
    "brawl_strategy_begun": Experiment(
        recipe="brawl_strategy",
        after="brawl_fighter",
        options=(*_FIGHTER, "--curriculum.first-stage", "3", "--train.total-seconds", "480"),
        evaluations=(
            *_brawl({"constant": "", "based": ""}, unseen=False),
            *(replace(e, episodes=32, bar="") for e in _RECOGNISED),
        ),
        claim="Eight minutes on two cores with the small strategy encoder, begun with four minutes "
        "of brawl",
        tags=("recognition",),
    ),
    "hide_and_seek_original": Experiment(
        recipe="hide_and_seek:original",
        options=_minutes(5),
        evaluations=_ORIGINAL,
        claim="With the original's numbers the seeker catches nearly everyone, after five minutes "
        "on two cores",
        tags=("hide_and_seek",),
    ),
    "hide_and_seek": Experiment(
        recipe="hide_and_seek",
        options=_minutes(10),
        evaluations=(
            # the seeker bot catches 66.5%; random hiders last 0.33 of the seeking time against it,
            # the hider bot survives 33.5%
            Evaluation(
                name="the hider bot's hiders",
                metric="catch_rate",
                against="bot:hider",
                episodes=512,
                bar=">= 0.665",
            ),
            Evaluation(
                name="random hiders", metric="catch_rate", against="bot:random", episodes=512
            ),
            Evaluation(
                name="survival",
                metric="survival",
                against="bot:seeker",
                episodes=512,
                bar=">= 0.335",
            ),
            Evaluation(
                name="lasting", metric="lasted", against="bot:seeker", episodes=512, bar=">= 0.53"
            ),
        ),
        claim="Both roles at least as good as the bots, after ten minutes on two cores",
        tags=("hide_and_seek",),
    ),
    "hide_and_seek_three_minutes": Experiment(
        recipe="hide_and_seek",
        options=_minutes(3),
        evaluations=(
            Evaluation(
                name="random hiders",
                metric="catch_rate",
                against="bot:random",
                episodes=512,
                bar=">= 0.5",
            ),
        ),
        claim="What `make train` reaches in its three minutes",
        tags=("hide_and_seek",),
    ),
    "hide_and_seek_gpu": Experiment(
        recipe="hide_and_seek:original",
        options=(
            "--policy.hidden",
            "256",
            "256",
            *_MANY_ENVS,
            "--train.total-seconds",
            "120",
            "--eval.every-seconds",
            "60",
        ),
        evaluations=_ORIGINAL,
        device="cuda",
        claim="Self-play with 32,768 envs, two minutes on an H200, passes the bar of the preset",
        tags=("gpu",),
    ),
    "hide_and_seek_gpu_lstm": Experiment(
        recipe="hide_and_seek:original",
        options=(
            "--policy.hidden",
            "128",
            "--policy.memory",
            "lstm",
            "--policy.memory-size",
            "128",
            *_MANY_ENVS,
            *_steps(400),
            "--eval.every-seconds",
            "60",
        ),
        evaluations=_ORIGINAL,
        device="cuda",
        claim="The same with an LSTM, 400 million agent-steps",
        tags=("gpu",),
    ),
    "arena_small": Experiment(
        recipe="arena_small",
        options=("--train.total-seconds", "300"),
        evaluations=(
            Evaluation(name="after 5 minutes", metric="hearts", episodes=64, bar=">= 10"),
        ),
        claim="Hearts per agent in 1,000 steps, one room, 6 agents",
        tags=("arena",),
    ),
    "arena_small_altar3": Experiment(
        recipe="arena_small",
        options=("--train.total-seconds", "300", "--game.altar-batteries", "3"),
        evaluations=(Evaluation(name="after 5 minutes", metric="hearts", episodes=64),),
        claim="The same where a heart costs three batteries",
        seeds=(0,),
        tags=("arena",),
    ),
    "arena_small_hearts_only": Experiment(
        recipe="arena_small",
        options=(
            "--train.total-seconds",
            "300",
            "--game.reward.ore",
            "0",
            "--game.reward.batteries",
            "0",
        ),
        evaluations=(Evaluation(name="after 5 minutes", metric="hearts", episodes=64),),
        claim="The same where only hearts are rewarded",
        seeds=(0,),
        tags=("arena",),
    ),
    "tasks_learning_progress": Experiment(
        recipe="arena_small",
        options=_HOPELESS,
        evaluations=_ORE,
        claim="Where 27 of 28 tasks cannot be learned, drawing by learning progress beats drawing "
        "evenly: by progress",
        tags=("curriculum",),
    ),
    "tasks_uniform": Experiment(
        recipe="arena_small",
        options=(*_HOPELESS, "--curriculum.tasks.sampler", "uniform"),
        evaluations=_ORE,
        claim="Where 27 of 28 tasks cannot be learned, drawing by learning progress beats drawing "
        "evenly: evenly",
        tags=("curriculum",),
    ),
    "brawl_stages": Experiment(
        recipe="brawl",
        options=("--train.total-seconds", "900"),
        evaluations=_brawl({"constant": ">= 0.9", "based": ">= 0.7"}, unseen=False),
        claim="Stages 1 and 2 within 15 minutes on two cores",
        tags=("brawl",),
    ),
    "mechs_2v2": Experiment(
        recipe="mechs_2v2",
        evaluations=(
            Evaluation(name="objective", metric="win_rate", against="bot:objective", bar=">= 0.7"),
            *_silenced(256),
        ),
        claim="Two against two on held-out maps within 20 minutes on two cores",
        tags=("mechs",),
    ),
    "arena_gpu": Experiment(
        recipe="arena",
        options=_GPU,
        evaluations=(Evaluation(name="hearts", metric="hearts", episodes=64, bar=">= 18"),),
        device="cuda",
        claim="Hearts per agent in 1,000 steps, four rooms, 24 agents, after seven minutes on an "
        "H200",
        tags=("gpu",),
    ),
    "brawl_gpu": Experiment(
        recipe="brawl",
        options=("--envs", "4096", "--ppo.minibatches", "16", *_GPU),
        evaluations=(
            *_brawl(_MET),
            Evaluation(
                name="the older half of its pool",
                metric="older_snapshots/win_rate",
                against="snapshots",
                bar=">= 0.6",
            ),
        ),
        device="cuda",
        claim="All three stages and self-play after seven minutes on an H200",
        tags=("gpu",),
    ),
    "brawl_strategy_gpu": Experiment(
        recipe="brawl_strategy",
        options=(
            "--envs",
            "2048",
            "--ppo.minibatches",
            "32",
            "--curriculum.first-stage",
            "3",
            *_steps(75),
            "--eval.every-agent-steps",
            "25000000",
            "--eval.every-seconds",
            "7200",
        ),
        evaluations=_RECOGNISED,
        device="cuda",
        claim="The strategy vector tells how the opponent plays",
        tags=("gpu",),
    ),
    "brawl_fighter_gpu": Experiment(
        recipe="brawl",
        options=(
            "--envs",
            "4096",
            "--ppo.minibatches",
            "16",
            "--policy.memory-size",
            "512",
            *_steps(60),
            "--eval.every-agent-steps",
            "30000000",
            "--eval.every-seconds",
            "7200",
        ),
        device="cuda",
        claim="60 million agent-steps on an H200, to begin brawl_strategy_full with",
        tags=("gpu",),
    ),
    "brawl_strategy_full_begun": Experiment(
        recipe="brawl_strategy_full",
        after="brawl_fighter_gpu",
        options=(
            *_FIGHTER,
            "--curriculum.first-stage",
            "3",
            *_steps(3.6),
            "--eval.every-agent-steps",
            "3600000",
            "--eval.every-seconds",
            "7200",
        ),
        evaluations=_RECOGNISED,
        device="cuda",
        claim="The full strategy encoder, begun with a fighter, after 3.6 million agent-steps on "
        "an H200",
        tags=("gpu",),
    ),
    "racing_gpu": Experiment(
        recipe="racing",
        options=("--train.total-seconds", "400", "--eval.every-seconds", "50"),
        evaluations=_RACING,
        device="cuda",
        claim="Rainbow drives unseen tracks from the camera after seven minutes on an H200",
        tags=("gpu",),
    ),
    "mechs_gpu": Experiment(
        recipe="mechs",
        options=(
            *_steps(800),
            "--eval.every-agent-steps",
            "200000000",
            "--eval.every-seconds",
            "7200",
        ),
        evaluations=_TEN,
        device="cuda",
        claim="Ten against ten on held-out maps after 800 million agent-steps on an H200",
        tags=("gpu",),
    ),
    "mechs_gpu_2v2": Experiment(
        recipe="mechs_2v2",
        options=(
            "--envs",
            "1024",
            "--policy.activation",
            "relu",
            *_steps(30),
            "--eval.every-agent-steps",
            "15000000",
            "--eval.every-seconds",
            "7200",
        ),
        evaluations=(Evaluation(name="objective", metric="win_rate", against="bot:objective"),),
        device="cuda",
        claim="Two against two on held-out maps after 30 million agent-steps on an H200",
        tags=("gpu",),
    ),
    "mechs_gpu_after_2v2": Experiment(
        recipe="mechs",
        options=(
            *_steps(600),
            "--eval.every-agent-steps",
            "150000000",
            "--eval.every-seconds",
            "7200",
        ),
        after="mechs_gpu_2v2",
        evaluations=_TEN,
        device="cuda",
        claim="Ten against ten on held-out maps, begun with what two against two taught, after 600 "
        "million agent-steps on an H200",
        tags=("gpu",),
    ),
}

"""How well can one history tell an opponent's style at all? The small strategy encoder learns from
matches between bots alone, without a policy that pulls it elsewhere; then it is asked what `ludus
eval --analyse` asks.

python benchmarks/recognition_bound.py [--learn keys|next|styles] [--vector 16] [--updates 4000]
[--rounds 2] [--measured 32] [--without ENTRY …]

About five minutes on one core. It learns from matches of three bots against every style, 24 a
style, `rounds` times with other seeds. --learn keys: it foretells the opponent's keys as
policy.strategy.next_keys does, from the vector of now and the observation of up to 64 steps later. next: the
keys of the very next step, from the vector alone. styles: it is told the style of every window,
also that of a switcher, which no training knows: how well windows can be named at most. Prints how
often a linear probe names the opponent from one window, how often it names the style of a switcher,
and how much further the vector moves when the switcher changes its style.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ludus.examine.linear_probe import Probe, accuracy, fit
from ludus.examine.strategy import SWITCHER, Seen, distances, switch_steps, worth_a_look
from ludus.games import load_game
from ludus.networks.next_keys import KeyPredictor
from ludus.networks.strategy import History, StrategyEncoder
from ludus.networks.strategy_config import StrategyConfig
from ludus.recipes.brawl import STYLES
from ludus.sim import Batch

FRAMES, STRIDE, STEPS, BATCH = 65, 5, 899, 256
# steps that keys are foretold ahead, and how many of them are asked for at a time
AHEAD, ASKED = 64, 8
NAMES = [name for name in STYLES if name != SWITCHER]
SWITCHED = ("aggressive", "defensive", "kiter")  # the styles of a switcher, in turn


@dataclass
class Matches:
    """[T, R, …]: all that one side observed, what of it is about the other, the keys that the other
    pressed, where episodes ended, and their ages."""

    observed: Tensor
    seen: Tensor
    keys: Tensor
    ends: Tensor
    age: Tensor
    opponent: np.ndarray

    def windows(self, times: Tensor, rows: Tensor) -> Tensor:
        back = torch.tensor(list(History((), FRAMES, STRIDE).steps_back))
        there = (back <= self.age[times, rows].unsqueeze(1)).float().unsqueeze(-1)
        entries = self.seen[times.unsqueeze(1) - back, rows.unsqueeze(1)]
        return torch.cat([entries * there, there], -1)[None, :, :, None]


def play(seed: int, matches: int, bot: str, without: Sequence[str]) -> tuple[Matches, int]:
    """`bot` against every style, `matches` at a time; entries that the history does without. Also:
    steps of a style of the switcher."""
    batch = Batch(load_game("brawl")[0], matches * len(STYLES), seed=seed)
    batch.set_controller("fighter", bot, team=0)
    for i, style in enumerate(STYLES):
        batch.set_controller("fighter", style, slice(i * matches, (i + 1) * matches), 1)
    batch.reset()
    watched = [name for name in batch.layout.observation if name.startswith("opponent_")]
    if unknown := sorted(set(without) - set(watched)):
        raise SystemExit(
            f"--without {unknown[0]} is no entry of the history: there is {', '.join(watched)}"
        )
    entries = [
        i
        for i, name in enumerate(batch.layout.observation)
        if name in watched and name not in without
    ]
    kept: dict[str, list[np.ndarray]] = {"observed": [], "keys": [], "ends": [], "age": []}
    for _ in range(STEPS):
        kept["observed"].append(batch.numpy("observation")[:, 0])
        kept["age"].append(batch.numpy("step"))
        batch.step()
        kept["keys"].append(batch.numpy("binary")[:, 1].astype(np.float32))
        kept["ends"].append(batch.numpy("finished") | batch.numpy("resetting"))
    tensors = {name: torch.from_numpy(np.stack(values)) for name, values in kept.items()}
    seen = tensors["observed"][..., entries]
    return Matches(
        **tensors, seen=seen, opponent=np.repeat(np.arange(len(STYLES)), matches)
    ), switch_steps(batch)


Loss = Callable[[Matches, Tensor, Tensor, Tensor], Tensor]
"""Of the vectors of windows that end at these times in these rows."""


def keys_loss(predictor: KeyPredictor) -> Loss:
    def loss(m: Matches, vector: Tensor, times: Tensor, rows: Tensor) -> Tensor:
        later = (times.unsqueeze(1) + torch.randint(AHEAD, (len(times), ASKED))).clamp(
            max=STEPS - 1
        )
        rows = rows.unsqueeze(1).expand_as(later)
        same = (
            m.age[later, rows] - m.age[times, rows[:, 0]].unsqueeze(1) == later - times.unsqueeze(1)
        ).float()
        guess = predictor(vector.unsqueeze(1).expand(-1, ASKED, -1), m.observed[later, rows])
        cost = nn.functional.binary_cross_entropy_with_logits(
            guess, m.keys[later, rows], reduction="none"
        ).mean(-1)
        return (cost * same).sum() / same.sum()

    return loss


def next_loss(head: nn.Linear) -> Loss:
    return lambda m, vector, times, rows: nn.functional.binary_cross_entropy_with_logits(
        head(vector), m.keys[times, rows]
    )


def styles_loss(head: nn.Linear, every: int) -> Loss:
    def loss(m: Matches, vector: Tensor, times: Tensor, rows: Tensor) -> Tensor:
        style, whole = style_of(m.opponent[rows.numpy()], m.age[times, rows].numpy(), every)
        cost = nn.functional.cross_entropy(head(vector), torch.from_numpy(style), reduction="none")
        return (cost * torch.from_numpy(whole)).sum() / whole.sum()

    return loss


def style_of(opponent: np.ndarray, age: np.ndarray, every: int) -> tuple[np.ndarray, np.ndarray]:
    """The style of windows that end at these ages, and whether they lie wholly in it."""
    switching = opponent == STYLES.index(SWITCHER)
    label = np.array([NAMES.index(name) if name in NAMES else 0 for name in STYLES])[opponent]
    turn = np.array([NAMES.index(name) for name in SWITCHED])[age // every % len(SWITCHED)]
    return np.where(switching, turn, label), ~switching | (age % every >= FRAMES - 1)


def learn(
    trained: list[Matches], what: str, vector: int, updates: int, every: int
) -> StrategyEncoder:
    torch.manual_seed(0)
    observed, keys = trained[0].observed.shape[-1], trained[0].keys.shape[-1]
    encoder = StrategyEncoder(
        History(tuple(range(trained[0].seen.shape[-1])), FRAMES, STRIDE),
        StrategyConfig(size="small", vector=vector),
        1,
    )
    head: nn.Module
    if what == "keys":
        head = KeyPredictor(vector + observed, keys)
        loss = keys_loss(head)
    elif what == "next":
        head = nn.Linear(vector, keys)
        loss = next_loss(head)
    else:
        head = nn.Linear(vector, len(NAMES))
        loss = styles_loss(head, every)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 - update / updates)
        m = trained[update % len(trained)]
        times, rows = (
            torch.randint(FRAMES, STEPS, (BATCH,)),
            torch.randint(m.seen.shape[1], (BATCH,)),
        )
        cost = loss(m, encoder.recognise(m.windows(times, rows)).vector[0], times, rows)
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
    return encoder


@torch.no_grad()
def look(encoder: StrategyEncoder, matches: Matches, every: int) -> Seen:
    """The windows of every row's first match that the analysis looks at."""
    found: dict[str, list[np.ndarray]] = {"vector": [], "row": [], "age": []}
    first = (torch.cumsum(matches.ends, 0) == 0).numpy()
    switching = matches.opponent == STYLES.index(SWITCHER)
    for t in range(FRAMES - 1, STEPS):
        age = matches.age[t].numpy()
        rows = np.flatnonzero(worth_a_look(age, FRAMES, every, switching) & first[t])
        if len(rows):
            windows = matches.windows(torch.full((len(rows),), t), torch.from_numpy(rows))
            found["vector"].append(encoder.recognise(windows).vector[0].numpy())
            found["row"].append(rows)
            found["age"].append(age[rows])
    parts = {name: np.concatenate(values) for name, values in found.items()}
    return Seen(
        **parts,
        attention=np.zeros((1, 1)),
        opponent=matches.opponent,
        outcome=np.zeros(len(matches.opponent)),
    )


def named_style(seen: Seen, fitted: Probe, every: int) -> float:
    """How often windows that lie within one style of a switcher are named that style."""
    style, whole = style_of(seen.opponent[seen.row], seen.age, every)
    mine = (seen.opponent[seen.row] == STYLES.index(SWITCHER)) & whole
    return float((fitted.log_probabilities(seen.vector[mine]).argmax(1) == style[mine]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learn", choices=("keys", "next", "styles"), default="keys")
    parser.add_argument("--vector", type=int, default=16)
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument(
        "--rounds",
        type=int,
        default=2,
        help="how often three bots meet every style, to learn from (default: 2)",
    )
    parser.add_argument(
        "--measured",
        type=int,
        default=32,
        help="matches of every style that are measured (default: 32)",
    )
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        help="entries of the history to leave out (default: none)",
    )
    own = parser.parse_args()
    torch.set_num_threads(1)  # its matrices are small
    trained = [
        play(seed, 24, bot, own.without)[0]
        for seed, bot in enumerate(("based", "aggressive", "kiter") * own.rounds, 1)
    ]
    measured, every = play(77, own.measured, "based", own.without)
    seen = look(learn(trained, own.learn, own.vector, own.updates, every), measured, every)
    label, _ = style_of(seen.opponent[seen.row], seen.age, every)
    use = (seen.opponent[seen.row] != STYLES.index(SWITCHER)) & (seen.age % FRAMES == FRAMES - 1)
    fits, measures = use & (seen.row % 2 == 0), use & (seen.row % 2 == 1)  # every second match
    fitted = fit(seen.vector[fits], label[fits], seen.row[fits], len(NAMES))
    named = accuracy(fitted, seen.vector[measures], label[measures], seen.row[measures])
    moved = distances(seen, STYLES.index(SWITCHER), FRAMES, every, 0)
    assert moved is not None
    found = {
        **vars(own),
        "named_from_one_window": named["one_window"]["mean"],
        "named_from_several_windows": named["several_windows"]["mean"],
        "style_of_switcher_named": named_style(seen, fitted, every),
        "switch_ratio": moved["ratio"]["mean"],
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

"""How well can one history tell an opponent's style at all? The small strategy encoder learns from matches between bots alone, by
foretelling the opponent's keys, without a policy that pulls it elsewhere; then it is asked what `ludus eval --analyse` asks.

python benchmarks/recognition_bound.py [--over 200] [--updates 2500] [--without damage stocks unarmed spear hammer …]

About three minutes on one core. --over: as learn.next_keys_over. --without: entries of the opponent (opponent_NAME) that are left
out of the history. Prints how often a linear probe names the opponent from one window, how often it names the style of a switcher, and how much
further the vector moves when the switcher changes its style: as it is, and as the probe's probabilities.
"""

import argparse
import json
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ludus.config import StrategyConfig
from ludus.examine.linear_probe import Probe, accuracy, fit
from ludus.examine.strategy import SWITCHER, Seen, distances, switch_steps, worth_a_look
from ludus.games import load_game
from ludus.learn.advantage import mean_ahead
from ludus.policies.strategy import History, StrategyEncoder
from ludus.recipes.brawl import STYLES
from ludus.sim import Batch

FRAMES, STRIDE, STEPS, BATCH = 65, 5, 899, 256
SWITCHED = ("aggressive", "defensive", "kiter")  # the styles of a switcher, in turn


@dataclass
class Matches:
    """[T, R, …]: what one side saw of the other, the keys that the other pressed, where episodes ended, and their ages."""

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


def play(seed: int, matches: int, bot: str, without: list[str]) -> tuple[Matches, int]:
    """`bot` against every style, `matches` at a time. Also: steps of a style of the switcher."""
    batch = Batch(load_game("brawl")[0], matches * len(STYLES), seed=seed)
    batch.set_controller("fighter", bot, team=0)
    for i, style in enumerate(STYLES):
        batch.set_controller("fighter", style, slice(i * matches, (i + 1) * matches), 1)
    batch.reset()
    left_out = {f"opponent_{name}" for name in without}
    names = [name for name in batch.layout.observation if name.startswith("opponent_")]
    if unknown := left_out - set(names):
        raise SystemExit(f"no entry {min(unknown)}: there is {', '.join(names)}")
    entries = [batch.layout.observation.index(name) for name in names if name not in left_out]
    kept: dict[str, list[np.ndarray]] = {"seen": [], "keys": [], "ends": [], "age": []}
    for _ in range(STEPS):
        kept["seen"].append(batch.numpy("observation")[:, 0, entries])
        kept["age"].append(batch.numpy("step"))
        batch.step()
        kept["keys"].append(batch.numpy("binary")[:, 1].astype(np.float32))
        kept["ends"].append(batch.numpy("finished") | batch.numpy("resetting"))
    tensors = {name: torch.from_numpy(np.stack(values)) for name, values in kept.items()}
    return Matches(**tensors, opponent=np.repeat(np.arange(len(STYLES)), matches)), switch_steps(batch)


def learn(trained: list[Matches], over: int, updates: int) -> StrategyEncoder:
    torch.manual_seed(0)
    history = History(tuple(range(trained[0].seen.shape[-1])), FRAMES, STRIDE)
    encoder = StrategyEncoder(history, StrategyConfig(size="small"), 1)
    head = nn.Linear(encoder.into.in_features, trained[0].keys.shape[-1])
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    ahead = [mean_ahead(m.keys, m.ends, over) for m in trained]
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 - update / updates)
        matches, target = trained[update % len(trained)], ahead[update % len(trained)]
        times, rows = torch.randint(FRAMES, STEPS, (BATCH,)), torch.randint(matches.seen.shape[1], (BATCH,))
        vector = encoder.recognise(matches.windows(times, rows)).vector[0]
        loss = nn.functional.binary_cross_entropy_with_logits(head(vector), target[times, rows])
        optimizer.zero_grad()
        loss.backward()
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
    return Seen(**parts, attention=np.zeros((1, 1)), opponent=matches.opponent, outcome=np.zeros(len(matches.opponent)))


def named_style(seen: Seen, fitted: Probe, names: list[str], every: int) -> float:
    """How often windows that lie within one style of a switcher are named that style."""
    whole = (seen.opponent[seen.row] == STYLES.index(SWITCHER)) & (seen.age % every >= FRAMES - 1)
    style = np.array([names.index(name) for name in SWITCHED])[seen.age[whole] // every % len(SWITCHED)]
    return float((fitted.log_probabilities(seen.vector[whole]).argmax(1) == style).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--over", type=int, default=200)
    parser.add_argument("--updates", type=int, default=2500)
    parser.add_argument("--without", nargs="*", default=[])
    own = parser.parse_args()
    torch.set_num_threads(1)  # its matrices are small
    trained = [play(seed, 24, bot, own.without)[0] for seed, bot in ((1, "based"), (2, "aggressive"))]
    measured, every = play(77, 32, "based", own.without)
    seen = look(learn(trained, own.over, own.updates), measured, every)
    names = [name for name in STYLES if name != SWITCHER]
    label = np.array([names.index(name) if name in names else -1 for name in STYLES])[seen.opponent[seen.row]]
    use = (label >= 0) & (seen.age % FRAMES == FRAMES - 1)
    fits, measures = use & (seen.row % 2 == 0), use & (seen.row % 2 == 1)  # every second match
    fitted = fit(seen.vector[fits], label[fits], seen.row[fits], len(names))
    chances = Seen(**{**vars(seen), "vector": np.exp(fitted.log_probabilities(seen.vector))})
    switcher = STYLES.index(SWITCHER)
    moves = {"vector": seen, "probabilities": chances}
    print(
        json.dumps(
            {
                "over": own.over,
                "without": own.without,
                "named_from_one_window": accuracy(fitted, seen.vector[measures], label[measures], seen.row[measures])[
                    "one_window"
                ]["mean"],
                "style_of_switcher_named": named_style(seen, fitted, names, every),
                **{f"switch_ratio_of_{n}": distances(s, switcher, FRAMES, every, 0)["ratio"]["mean"] for n, s in moves.items()},
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()

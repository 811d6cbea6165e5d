"""What the documentation shows: blocks of Python, and commands of `ludus`, in blocks and within
sentences."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
INLINE = re.compile(r"`(ludus [^`]+)`")
PLACEHOLDERS = {
    "RUN": "runs/NAME",
    "runs/NAME": "runs/NAME",
    "GAME": "pursuit",
    "RECIPE": "pursuit",
    "SEED": "1",
    "N": "3",
    "SECONDS": "9",
    "html|gif|mp4": "html",
    "gif|mp4": "gif",
    "…": "",
}


@dataclass(frozen=True)
class Example:
    """Where it stands, and what it says. `info` is what follows the opening fence: a language, or
    nothing for a terminal."""

    page: Path
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Example]:
    text = page.read_text()
    return [
        Example(page, text[: m.start()].count("\n") + 1, m[1], m[2]) for m in FENCE.finditer(text)
    ]


def python_blocks(page: Path) -> list[Example]:
    return [block for block in blocks(page) if block.info.split(" ")[0] == "python"]


def commands(page: Path) -> list[tuple[Example, list[str]]]:
    """Every `ludus …` with its words, placeholders filled in."""
    shown = []
    for block in blocks(page):
        joined = re.sub(r"\\\n\s*", " ", block.text)
        lines = [line.removeprefix("$ ") for line in joined.splitlines()] if not block.info else []
        shown += [
            Example(page, block.line, "", line) for line in lines if re.match(r"ludus( |$)", line)
        ]
    text = page.read_text()
    sentences = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    shown += [
        Example(page, sentences[: m.start()].count("\n") + 1, "", " ".join(m[1].split()))
        for m in INLINE.finditer(sentences)
    ]
    return [(example, words_of(example.text)) for example in shown]


def words_of(command: str) -> list[str]:
    """`[…]` is what may be left out, capitals and an ellipsis stand for something."""
    words = [
        word.strip("[]") if word.startswith(("[", "--")) or word.endswith("]") else word
        for word in shlex.split(command, comments=True)
    ]
    if words[1:3] == ["train", "…"]:
        words[2] = "pursuit"
    filled = [
        PLACEHOLDERS.get(word, word)
        .replace("…", "1")
        .replace("RUN@", "runs/NAME@")
        .replace("gym:ID", "gym:CartPole-v1")
        for word in words
    ]
    return [word for word in filled[1:] if word]

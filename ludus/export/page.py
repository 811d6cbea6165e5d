"""A replay as one HTML file: frames, scripts and styles in it, nothing fetched, so it opens from
disk."""

from __future__ import annotations

import base64
import gzip
import html
import json
from pathlib import Path

from ludus.files import write_atomically
from ludus.films.film import Film
from ludus.films.pages import STATIC, Pages
from ludus.films.recorded import RecordedFilm
from ludus.films.shows import OWN_VIEWS

PARTS = (
    "three",
    "ludus/dom",
    "ludus/frames",
    "ludus/solids",
    "ludus/stage",
    "ludus/panel",
    "ludus/player",
    "ludus/alone",
)
# bytes of what agents see, before compression: beyond it the file would grow unwieldy
MOST_SEEN = 24 * 2**20


def film_page(film: Film | RecordedFilm, pages: Pages, title: str) -> str:
    """The page as text."""
    name = str(film.header["view"])
    scripts = {part: pages.scripts[part] for part in PARTS}
    scripts["game/view"] = (
        STATIC / f"{name}.js" if name in OWN_VIEWS else pages.scripts[f"game/{name}"]
    )
    imports = {part: _data(path.read_bytes(), "text/javascript") for part, path in scripts.items()}
    seen = {agent: film.seen_message(agent) for agent in film.seen}
    if sum(map(len, seen.values())) > MOST_SEEN:
        seen = {}
    blobs = [f'<script type="text/plain" id="film">{_packed(film.message())}</script>']
    blobs += [
        f'<script type="text/plain" data-agent="{agent}">{_packed(data)}</script>'
        for agent, data in seen.items()
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{(STATIC / "style.css").read_text()}</style>
<script type="importmap">{json.dumps({"imports": imports})}</script></head>
<body><main class="replay"><div class="inner" id="page"></div></main>
{"".join(blobs)}
<script type="module">import "ludus/alone";</script></body></html>
"""


def write_page(film: Film | RecordedFilm, pages: Pages, path: Path, title: str) -> Path:
    text = film_page(film, pages, title)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path


def _data(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _packed(message: bytes) -> str:
    return base64.b64encode(gzip.compress(message, 6, mtime=0)).decode()

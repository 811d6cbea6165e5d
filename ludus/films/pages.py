"""The files a page is made of, and the import map that names them for each other: no build step.

Scripts import each other by name ("ludus/player", "three"), so the same files work served and
inside one exported file.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from ludus.films.shows import folder_of, package_of
from ludus.games import REGISTRY

STATIC = Path(__file__).parent / "static"
VENDOR = {"three": "vendor/three.module.min.js", "uplot": "vendor/uPlot.esm.js"}
KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain",
}


class Pages:
    """`own`: view.js of games beside ours, by game name."""

    def __init__(self, own: Mapping[str, Path] | None = None) -> None:
        scripts = {f"ludus/{path.stem}": path for path in sorted(STATIC.glob("*.js"))}
        games = {name: folder_of(package_of(name)) / "view.js" for name in REGISTRY} | dict(
            own or {}
        )
        self.scripts: dict[str, Path] = {
            **{name: STATIC / path for name, path in VENDOR.items()},
            **scripts,
            **{f"game/{name}": path for name, path in games.items() if path.exists()},
        }
        self.import_map = json.dumps(
            {"imports": {name: address(name, path) for name, path in self.scripts.items()}}
        )

    def index(self) -> str:
        return (STATIC / "index.html").read_text().replace("IMPORT_MAP", self.import_map)

    def policy(self, port: int) -> str:
        """What a page may do: its own scripts, and the import map by its hash; nothing written into
        a page by a run."""
        digest = base64.b64encode(hashlib.sha256(self.import_map.encode()).digest()).decode()
        sockets = f"ws://127.0.0.1:{port} ws://localhost:{port}"
        return (
            f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src "
            "'self' data: blob:; "
            f"connect-src 'self' {sockets}; base-uri 'none'; form-action 'none'; frame-ancestors "
            "'none'"
        )

    def files(self) -> dict[str, tuple[Path, str]]:
        """Address → file and its type: the only ones that are served."""
        own = {
            f"/static/{p.relative_to(STATIC)}": p
            for p in STATIC.rglob("*")
            if p.suffix in KINDS and p.name != "index.html"
        }
        games = {
            address(name, path): path
            for name, path in self.scripts.items()
            if name.startswith("game/")
        }
        return {where: (path, KINDS[path.suffix]) for where, path in {**own, **games}.items()}


def address(name: str, path: Path) -> str:
    return (
        f"/view/{name.removeprefix('game/')}.js"
        if name.startswith("game/")
        else f"/static/{path.relative_to(STATIC)}"
    )

"""The viewer's server: pages, data about runs, films of replays, and sessions over WebSocket. On
127.0.0.1 only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from ludus.errors import LudusError
from ludus.export.page import film_page
from ludus.films.film import plain
from ludus.films.pages import Pages
from ludus.films.shows import Shows
from ludus.sim.program import controllers
from ludus.viewer.guard import Guard
from ludus.viewer.library import Library
from ludus.viewer.session import Fault, Session
from ludus.viewer.theatre import Theatre

MOST_MESSAGE = 4096  # bytes a page may send at once: keys and buttons
MOST_SESSIONS = 8
IDLE_SECONDS = 0.05

log = logging.getLogger("ludus.viewer")


class Viewer:
    def __init__(
        self,
        root: Path | None,
        runs: Sequence[Path] = (),
        own: Sequence[str] = (),
        bots: Sequence[str] = (),
    ) -> None:
        self.shows = Shows(own, bots)
        self.library = Library(root, runs)
        self.theatre = Theatre(self.library, self.shows)
        scripts = {show.name: show.script for show in map(self.shows.find, own) if show.script}
        self.pages = Pages(scripts)
        self.files = self.pages.files()
        self.sessions = 0

    def app(self, port: int) -> Guard:
        routes = [
            Route("/", self.index),
            Route("/api/runs", self.runs),
            Route("/api/games", self.games),
            Route("/api/run/{run:path}/replay/{file}/seen/{agent:int}", self.seen),
            Route("/api/run/{run:path}/replay/{file}/export", self.export),
            Route("/api/run/{run:path}/replay/{file}", self.replay),
            Route("/api/run/{run:path}/analysis/{file}", self.picture),
            Route("/api/run/{run:path}", self.run),
            WebSocketRoute("/ws/stage", self.stage),
            Route("/{path:path}", self.file),
        ]
        return Guard(Starlette(routes=routes), port, self.pages.policy(port))

    # -- files -------------------------------------------------------------------------------------

    async def index(self, request: Request) -> Response:
        return HTMLResponse(self.pages.index())

    async def file(self, request: Request) -> Response:
        found = self.files.get(request.url.path)
        if found is None:
            return JSONResponse({"error": "there is nothing here: go back to /"}, 404)
        return FileResponse(found[0], media_type=found[1], headers={"cache-control": "no-cache"})

    # -- data --------------------------------------------------------------------------------------

    async def runs(self, request: Request) -> Response:
        root = str(self.library.root) if self.library.root else ""
        return await self._answer(lambda: {"root": root, "runs": self.library.listing()})

    async def games(self, request: Request) -> Response:
        return await self._answer(self._games)

    def _games(self) -> dict[str, Any]:
        out = []
        for source in sorted(self.shows.allowed):
            show = self.shows.find(source)
            bots = {
                role: sorted(table, key=lambda n: n not in show.bots)
                for role, table in controllers(show.game).items()
            }
            out.append(
                {
                    "source": source,
                    "summary": show.game.summary,
                    "bots": bots,
                    "presets": list(show.game.presets),
                }
            )
        return {"games": out}

    async def run(self, request: Request) -> Response:
        return await self._answer(partial(self.library.whole, request.path_params["run"]))

    async def picture(self, request: Request) -> Response:
        asked = request.path_params
        answer = await self._answer(partial(self.library.picture, asked["run"], asked["file"]))
        if answer.status_code == 200:
            answer.headers["content-type"] = "image/png"
        return answer

    async def replay(self, request: Request) -> Response:
        asked = request.path_params
        return await self._answer(lambda: self.theatre.film(asked["run"], asked["file"]).message())

    async def seen(self, request: Request) -> Response:
        asked = request.path_params

        def look() -> bytes:
            film = self.theatre.film(asked["run"], asked["file"])
            if asked["agent"] not in film.seen:
                raise LudusError(f"there is no agent {asked['agent']} whose view could be shown")
            return film.seen_message(asked["agent"])

        return await self._answer(look)

    async def export(self, request: Request) -> Response:
        asked = request.path_params
        name = Path(asked["file"]).stem.replace('"', "")
        answer = await self._answer(
            lambda: film_page(
                self.theatre.film(asked["run"], asked["file"]), self.pages, name
            ).encode()
        )
        if answer.status_code == 200:
            answer.headers["content-type"] = "application/octet-stream"
            answer.headers["content-disposition"] = f'attachment; filename="{name}.html"'
        return answer

    async def _answer(self, make: Callable[[], Any]) -> Response:
        """JSON or bytes, made in a thread; an error a user can act on as one sentence."""
        try:
            made = await asyncio.to_thread(make)
        except LudusError as error:
            return JSONResponse({"error": str(error)}, 404 if "there is no" in str(error) else 400)
        except Exception as error:  # a page must get an answer, and the terminal the whole story
            log.exception("unexpected")
            return JSONResponse(
                {"error": f"the viewer failed: {type(error).__name__}: {error}"}, 500
            )
        if isinstance(made, bytes):
            return Response(made, media_type="application/octet-stream")
        return Response(json.dumps(plain(made), allow_nan=False), media_type="application/json")

    # -- sessions ----------------------------------------------------------------------------------

    async def stage(self, socket: WebSocket) -> None:
        await socket.accept()
        if self.sessions >= MOST_SESSIONS:
            await self._end(
                socket, f"{MOST_SESSIONS} games are being watched already: close another page"
            )
            return
        self.sessions += 1
        try:
            session = await asyncio.to_thread(self.theatre.open(_wanted(socket)))
            if (take := socket.query_params.get("take")) is not None:
                session.say(json.dumps({"take": int(take) if take.isdecimal() else -1}))
            await self._play(socket, session)
        except LudusError as error:
            await self._end(socket, str(error))
        except Fault as fault:
            await self._end(socket, f"the page said something that makes no sense: {fault}")
        except WebSocketDisconnect:
            pass
        except Exception as error:
            log.exception("unexpected")
            await self._end(socket, f"the viewer failed: {type(error).__name__}: {error}")
        finally:
            self.sessions -= 1

    async def _play(self, socket: WebSocket, session: Session) -> None:
        """Steps at the game's pace. A page that reads slowly slows the game, not the server."""
        hearing = asyncio.create_task(self._hear(socket, session))
        try:
            due = time.perf_counter()
            while not hearing.done():
                if session.paused and not session.fresh:
                    await asyncio.sleep(IDLE_SECONDS)
                    due = time.perf_counter()
                    continue
                await self._send(socket, await asyncio.to_thread(session.step))
                due = max(due + session.seconds, time.perf_counter() - session.seconds)
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
            hearing.result()
        finally:
            hearing.cancel()
            with contextlib.suppress(BaseException):
                await hearing

    async def _send(self, socket: WebSocket, frame: bytes) -> None:
        try:
            await socket.send_bytes(frame)
        except RuntimeError as error:  # the page went away while the frame was made
            raise WebSocketDisconnect from error

    async def _hear(self, socket: WebSocket, session: Session) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None or len(text) > MOST_MESSAGE:
                raise Fault("a message must be text of at most 4 KB")
            session.say(text)

    async def _end(self, socket: WebSocket, reason: str) -> None:
        with contextlib.suppress(Exception):
            await socket.send_text(json.dumps({"error": reason}))
            await socket.close(1000)


def _wanted(socket: WebSocket) -> dict[str, Any]:
    """What the address asks for."""
    asked = socket.query_params
    values: dict[str, float] = {}
    for entry in asked.getlist("value"):
        name, _, number = entry.partition("=")
        try:
            values[name] = float(number)
        except ValueError:
            raise LudusError(f"'{entry[:80]}' is no NAME=NUMBER") from None
    return {**asked, "agents": asked.getlist("agents"), "values": values}


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes any that is free."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise LudusError(
            f"port {port} cannot be used ({reason}): is another viewer open there? Choose one with "
            "--port, or 0"
        ) from None
    return listener


def _is_about_us(record: logging.LogRecord) -> bool:
    """Not what a client did wrong ("Invalid HTTP request received."): anybody could fill the
    terminal with it. Nor an answer that was still being made when the viewer ended."""
    cancelled = record.exc_info is not None and isinstance(
        record.exc_info[1], asyncio.CancelledError
    )
    return not cancelled and not record.getMessage().startswith(
        ("Invalid", "Unsupported", "Cancel ")
    )


def serve(
    viewer: Viewer, listener: socket.socket, started: Callable[[str], None] | None = None
) -> None:
    """Until interrupted."""
    import uvicorn

    port = listener.getsockname()[1]
    config = uvicorn.Config(
        viewer.app(port),
        log_level="warning",
        ws_max_size=MOST_MESSAGE,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_about_us)
    if started is not None:
        started(f"http://127.0.0.1:{port}/")
    uvicorn.Server(config).run(sockets=[listener])


def link(**parts: Any) -> str:
    """The part of an address that names a page: link(page="watch", game="pursuit")."""
    from urllib.parse import quote, urlencode

    page = parts.pop("page")
    path = "/".join(quote(str(p), safe="") for p in parts.pop("path", ()))
    query: list[tuple[str, str]] = []
    for name, value in parts.items():
        values: Mapping[str, Any] | Sequence[Any] = (
            value if isinstance(value, list | tuple) else [value]
        )
        query += [(name, str(v)) for v in values if v is not None]
    return f"#/{page}" + (f"/{path}" if path else "") + (f"?{urlencode(query)}" if query else "")

"""Who may talk to the viewer: this machine's browser, on a page of the viewer itself.

A page of another site can send requests to 127.0.0.1 but not choose its Host and Origin: both are
checked for every request and every WebSocket. Only GET is answered. The content security policy
keeps anything a run holds from becoming a script.
"""

from __future__ import annotations

from typing import Any

MOST_PATH = 2048


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: Any, port: int, policy: str) -> None:
        self.app, self.policy = app, policy
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        fault = self._fault(scope)
        if fault and scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": fault[1]})
        elif fault:
            await self._refuse(send, *fault)
        else:
            await self.app(
                scope, receive, self._hardened(send) if scope["type"] == "http" else send
            )

    def _fault(self, scope: dict[str, Any]) -> tuple[int, str] | None:
        headers = [(k.decode("latin1").lower(), v.decode("latin1")) for k, v in scope["headers"]]
        hosts = [v for k, v in headers if k == "host"]
        origins = [v for k, v in headers if k == "origin"]
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 403, "this is a viewer for localhost only"
        allowed = {f"http://{host}" for host in self.hosts}
        if any(origin not in allowed for origin in origins) or (
            scope["type"] == "websocket" and not origins
        ):
            return 403, "only the viewer's own pages may ask"
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            return 405, "the viewer only answers GET"
        if len(scope["path"]) > MOST_PATH or len(scope.get("query_string", b"")) > MOST_PATH:
            return 414, f"addresses have at most {MOST_PATH} characters"
        return None

    async def _refuse(self, send: Any, status: int, text: str) -> None:
        body = text.encode() + b"\n"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _hardened(self, send: Any) -> Any:
        extra = [
            (b"content-security-policy", self.policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]

        async def hardened(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        return hardened

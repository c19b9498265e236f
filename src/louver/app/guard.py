"""Who may speak to the explorer: a browser on this machine that has its token, and no page of anybody else.

A request passes if its Host is this server's address, its Origin, where there is one, is this server's (a websocket must have one),
and it has the cookie that the token in the opening address was exchanged for. The cookie is `HttpOnly` and `SameSite=Strict`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "Keys"]

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Vue compiles templates in the browser, which is `unsafe-eval`; scripts in the page itself need the nonce, and handlers in HTML never run."""
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
REFUSED = "Not for this address. Open the one that louver explore printed."
MOVED_IN = '<!doctype html><title>louver</title><script nonce="{nonce}">location.replace("/")</script>'
"""A page of our own moves on, not a redirect: a strict cookie is not sent along one that began elsewhere, such as in a mail."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Where the server is, and what opens it.

    Attributes
    ----------
    port : int
    token : str
        In the opening address.
    ticket : str
        What the token is exchanged for.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def cookie(self) -> str:
        """Browsers share cookies between the ports of a machine, so its name has the port."""
        return f"louver-{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/?token={self.token}"


class Guard:
    """An ASGI application that lets only the owner's browser through to another, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        is_socket = scope["type"] == "websocket"
        headers = _headers(scope)
        nonce = secrets.token_urlsafe(16)
        if not self._is_ours(headers, is_socket=is_socket):
            await _refuse(scope, send, nonce)
        elif self._has_token(scope):
            entry = f"{self.keys.cookie}={self.keys.ticket}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(send, 200, MOVED_IN.format(nonce=nonce), nonce, {"Set-Cookie": entry})
        elif not self._has_ticket(headers):
            await _refuse(scope, send, nonce)
        else:
            await self.app(scope, receive, send if is_socket else _dressed(send, nonce))

    def _is_ours(self, headers: Mapping[str, str], *, is_socket: bool) -> bool:
        """Whether the request was made to us by a page of ours, or by no page at all."""
        origin = headers.get("origin")
        if headers.get("host") not in self.keys.hosts or (origin is None and is_socket):
            return False
        return origin is None or origin == f"http://{headers['host']}"

    def _has_token(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return secrets.compare_digest(given.encode(), self.keys.token.encode())

    def _has_ticket(self, headers: Mapping[str, str]) -> bool:
        try:
            held = SimpleCookie(headers.get("cookie", "")).get(self.keys.cookie)
        except CookieError:
            return False
        return held is not None and secrets.compare_digest(held.value.encode(), self.keys.ticket.encode())


def _headers(scope: Scope) -> dict[str, str]:
    """The headers of a request; what comes twice counts as neither."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = value.decode("latin-1") if key not in found else "\0"
    return found


async def _refuse(scope: Scope, send: Send, nonce: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, 403, f"<!doctype html><title>louver</title><p>{REFUSED}</p>", nonce, {})


async def _answer(send: Send, status: int, page: str, nonce: str, more: Mapping[str, str]) -> None:
    headers = {"Content-Type": "text/html; charset=utf-8", **HEADERS, **more}
    headers["Content-Security-Policy"] = POLICY.format(nonce=nonce)
    listed = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": page.encode()})


def _dressed(send: Send, nonce: str) -> Send:
    """Send answers with our headers; the scripts of a page get the nonce.

    A page is sent before any data are in it, and the labels of later messages are never HTML, so its script tags are the framework's.
    """
    held: list[Message] = []
    body = bytearray()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = dict(message["headers"])
            for name, value in {**HEADERS, "Content-Security-Policy": POLICY.format(nonce=nonce)}.items():
                headers[name.lower().encode()] = value.encode()
            message["headers"] = [one for one in headers.items() if one[0] != b"server"]
            if headers.get(b"content-type", b"").startswith(b"text/html"):
                held.append(message)
                return
        elif held:
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            page = bytes(body).replace(b"<script", f'<script nonce="{nonce}"'.encode())
            start = held.pop()
            start["headers"] = [one for one in start["headers"] if one[0] != b"content-length"]
            start["headers"].append((b"content-length", str(len(page)).encode()))
            await send(start)
            message = {**message, "body": page}
        await send(message)

    return sending

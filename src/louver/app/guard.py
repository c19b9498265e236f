"""Access to the explorer: only for the browser that first presented its token, and for no other page or program.

No cookie is used: browsers send cookies to every port of a machine, so another user's server would receive it. Secrets travel only to
this server, in headers and paths:

- The token in the opening address works once. It comes after `#`, so that no request carries it before the page at `/` sends it here.
- It is exchanged for the browser's key, which the page keeps in the storage of this origin, port included.
- The key is exchanged for a prefix, a new one for every load. All pages, files, uploads and websockets lie below a prefix; the page
  itself is served once below each, and the address that is shown does not contain it.

In addition, Host and Origin must be this server's, and a websocket must have an Origin.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "Keys"]

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Vue compiles templates in the browser, which is `unsafe-eval`; scripts in the page itself need the nonce, and handlers in HTML never
run.
"""
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
REFUSED = "This is not the explorer's address. Open the one that louver explore printed."
DOOR = """<!doctype html><html lang="en"><title>louver</title><link rel="icon" href="data:,"><style>body {{ font: 15px/22px sans-serif;
margin: 15vh auto; max-width: 36em; padding: 0 16px }}</style><p hidden>This browser has no key to the explorer. Open the address that
louver explore printed. It works once: if it has been used, continue in that browser, or stop louver with Ctrl-C and start it again.</p>
<script nonce="{nonce}">
(async () => {{
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const page = token === null ? location.hash : "";
  if (token !== null) history.replaceState(null, "", "/");
  const enter = async (name, secret) => secret === null ? null : fetch("/enter", {{ method: "POST", headers: {{ [name]: secret }} }});
  let answer = await enter("X-Louver-Token", token);
  if (!answer?.ok) answer = await enter("X-Louver-Key", localStorage.getItem("louver-key"));
  if (!answer?.ok) return document.querySelector("p").hidden = false;
  const given = await answer.json();
  localStorage.setItem("louver-key", given.key);
  location.replace(given.prefix + "/" + page);
}})();
</script></html>"""
"""The page that anyone may load: it contains no secret, and exchanges the secrets that the browser holds."""


class Keys:
    """The address of the server, and the secrets that open it.

    Parameters
    ----------
    port : int

    Attributes
    ----------
    token : str
        Part of the opening address; it works once.
    key : str
        The secret for which the token is exchanged.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.token, self.key = _secret(), _secret()
        self._is_used = False
        self._waiting: set[str] = set()
        self._prefixes: set[str] = set()

    @property
    def hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/#token={self.token}"

    def new_prefix(self, *, token: str = "", key: str = "") -> str | None:
        """A path for one load, such as "/secret", in exchange for the key, or for the token the first time."""
        if _is_same(token, self.token) and not self._is_used:
            self._is_used = True
        elif not _is_same(key, self.key):
            return None
        prefix = f"/{_secret()}"
        self._prefixes.add(prefix)
        self._waiting.add(prefix)
        return prefix

    def prefix_of(self, path: str) -> str | None:
        """The prefix of a path, if it has been issued."""
        prefix = "/" + path.split("/", 2)[1] if path.startswith("/") else ""
        return prefix if prefix in self._prefixes else None

    def is_first_load(self, prefix: str) -> bool:
        """Whether the page below a prefix has not been served yet; the call marks it as served."""
        is_first = prefix in self._waiting
        self._waiting.discard(prefix)
        return is_first


class Guard:
    """An ASGI application that lets only the owner's browser through to another application, and sets the headers of every response."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        is_socket = scope["type"] == "websocket"
        request = "" if is_socket else f"{scope['method']} {scope['path']}"
        headers = _headers(scope)
        nonce = secrets.token_urlsafe(16)
        if not self._is_ours(headers, is_socket=is_socket):
            await _refuse(scope, send, nonce)
        elif request == "GET /":
            await _answer(send, 200, DOOR.format(nonce=nonce), nonce)
        elif _is_from_elsewhere(headers):
            await _refuse(scope, send, nonce)
        elif request == "POST /enter":
            await self._enter(headers, scope, send, nonce)
        elif (prefix := self.keys.prefix_of(scope["path"])) is None:
            await _refuse(scope, send, nonce)
        elif request == f"GET {prefix}/" and not self.keys.is_first_load(prefix):
            await _answer(send, 200, DOOR.format(nonce=nonce), nonce)
        else:
            inner = {**scope, "root_path": prefix}
            await self.app(inner, receive, send if is_socket else _dressed(send, nonce))

    def _is_ours(self, headers: Mapping[str, str], *, is_socket: bool) -> bool:
        """Whether the request came from a page of the explorer, or from no page at all."""
        origin = headers.get("origin")
        if headers.get("host") not in self.keys.hosts or (origin is None and is_socket):
            return False
        return origin is None or origin == f"http://{headers['host']}"

    async def _enter(self, headers: Mapping[str, str], scope: Scope, send: Send, nonce: str) -> None:
        token, key = headers.get("x-louver-token", ""), headers.get("x-louver-key", "")
        prefix = self.keys.new_prefix(token=token, key=key) if "origin" in headers else None
        if prefix is None:
            await _refuse(scope, send, nonce)
            return
        given = json.dumps({"key": self.keys.key, "prefix": prefix})
        await _answer(send, 200, given, nonce, kind="application/json")


def _secret() -> str:
    return secrets.token_urlsafe(32)


def _is_same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


def _is_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether the browser reports that another page made the request, as it also does for images and scripts; another port counts as
    another page."""
    return headers.get("sec-fetch-site", "same-origin") != "same-origin"


def _headers(scope: Scope) -> dict[str, str]:
    """The headers of a request; one that is sent twice matches no value."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = value.decode("latin-1") if key not in found else "\0"
    return found


async def _refuse(scope: Scope, send: Send, nonce: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, 403, f"<!doctype html><title>louver</title><p>{REFUSED}</p>", nonce)


async def _answer(send: Send, status: int, text: str, nonce: str, *, kind: str = "text/html") -> None:
    headers = {"Content-Type": f"{kind}; charset=utf-8", **HEADERS}
    headers["Content-Security-Policy"] = POLICY.format(nonce=nonce)
    listed = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": text.encode()})


def _dressed(send: Send, nonce: str) -> Send:
    """Send responses with the security headers; the scripts of a page get the nonce.

    A page is sent before any data are in it, and the labels of later messages are never HTML, so its script tags come from the framework.
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

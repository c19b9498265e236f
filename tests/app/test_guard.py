"""Who may speak to the explorer, request by request."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from louver.app.guard import Guard, Keys

KEYS = Keys(8000, token="a-token", ticket="a-ticket")  # the same in every worker, which lists tests by them
OURS = {"host": "127.0.0.1:8000"}
COOKIE = {"cookie": f"other=1; {KEYS.cookie}={KEYS.ticket}"}


async def page(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers a page in two pieces, or takes a websocket."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    headers = [(b"content-type", b"text/html"), (b"content-length", b"31"), (b"cache-control", b"public")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"<script>1", "more_body": True})
    await send({"type": "http.response.body", "body": b"</script>"})


def asked(
    headers: dict[str, str], *, kind: str = "http", path: str = "/", query: str = "", method: str = "GET"
) -> Any:
    """What the guard sends for a request."""
    scope = {
        "type": kind,
        "path": path,
        "method": method,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    asyncio.run(Guard(page, KEYS)(scope, receive, send))
    return sent


def test_the_token_becomes_a_cookie() -> None:
    start, body = asked(OURS, query=f"token={KEYS.token}")
    headers = dict(start["headers"])
    assert start["status"] == 200
    assert (
        headers[b"set-cookie"] == f"{KEYS.cookie}={KEYS.ticket}; HttpOnly; SameSite=Strict; Path=/".encode()
    )
    assert b'location.replace("/")' in body["body"]
    assert KEYS.token.encode() not in body["body"] and KEYS.ticket != KEYS.token
    assert KEYS.token not in repr(KEYS)


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({}, "token=wrong"),
        ({}, "token="),
        ({"cookie": f"{KEYS.cookie}=wrong"}, ""),
        ({"cookie": "\x01=;;;"}, ""),
        ({**COOKIE, "host": "evil.example:8000"}, ""),
        ({**COOKIE, "host": "127.0.0.1"}, ""),
        ({"host": "evil.example"}, f"token={KEYS.token}"),
        ({**COOKIE, "origin": "http://evil.example"}, ""),
        ({**COOKIE, "origin": "null"}, ""),
        ({**COOKIE, "origin": "https://127.0.0.1:8000"}, ""),
    ],
)
def test_everybody_else_is_refused(headers: dict[str, str], query: str) -> None:
    start, _ = asked({**OURS, **headers}, query=query)
    assert start["status"] == 403
    assert b"set-cookie" not in dict(start["headers"])


def test_a_header_that_comes_twice() -> None:
    scope_headers = {**OURS, **COOKIE, "Host": "127.0.0.1:8000"}
    assert asked(scope_headers)[0]["status"] == 403


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({**OURS, **COOKIE, "origin": "http://127.0.0.1:8000"}, True),
        ({"host": "localhost:8000", **COOKIE, "origin": "http://localhost:8000"}, True),
        ({**OURS, **COOKIE}, False),
        ({**OURS, **COOKIE, "origin": "http://evil.example"}, False),
        ({**OURS, **COOKIE, "origin": "http://localhost:8000"}, False),
        ({**OURS, "origin": "http://127.0.0.1:8000"}, False),
    ],
)
def test_websockets(headers: dict[str, str], is_let_in: bool) -> None:
    [sent] = asked(headers, kind="websocket", path="/_nicegui_ws/")
    assert sent["type"] == ("websocket.accept" if is_let_in else "websocket.close")


def test_every_answer_has_its_headers() -> None:
    start, body = asked({**OURS, **COOKIE})
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert (
        "default-src 'self'" in policy
        and "frame-ancestors 'none'" in policy
        and "connect-src 'self'" in policy
    )
    assert "'unsafe-inline'" not in re.search(r"script-src[^;]*", policy)[0]
    nonce = re.search(r"'nonce-([\w-]+)'", policy)[1]
    assert body["body"] == f'<script nonce="{nonce}">1</script>'.encode()
    assert headers["content-length"] == str(len(body["body"]))
    assert nonce not in str(asked({**OURS, **COOKIE})), "a nonce is used once"

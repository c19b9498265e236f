"""Who may speak to the explorer, request by request."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from louver.app.guard import Guard, Keys

ORIGIN = "http://127.0.0.1:8000"
OURS = {"host": "127.0.0.1:8000"}
FROM_US = {**OURS, "origin": ORIGIN}


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
    keys: Keys, headers: dict[str, str], path: str = "/", *, kind: str = "http", method: str = "GET"
) -> Any:
    """What the guard sends for a request."""
    scope = {
        "type": kind,
        "path": path,
        "method": method,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    asyncio.run(Guard(page, keys)(scope, receive, send))
    return sent


def is_served(sent: Any) -> bool:
    """Whether an answer is that of the application behind the guard."""
    return sent[0]["type"] == "websocket.accept" or (
        sent[0]["status"] == 200 and b"<script nonce=" in sent[1]["body"] and b"/enter" not in sent[1]["body"]
    )


def entered(keys: Keys, **secrets: str) -> dict[str, str] | None:
    """What somebody gets at the door for a token or a key."""
    given = {f"x-louver-{name}": value for name, value in secrets.items()}
    start, body = asked(keys, {**FROM_US, **given}, "/enter", method="POST")
    return json.loads(body["body"]) if start["status"] == 200 else None


def test_the_door_holds_no_secret_and_asks_for_one() -> None:
    keys = Keys(8000)
    start, body = asked(keys, OURS)
    assert start["status"] == 200 and b'fetch("/enter"' in body["body"]
    for secret in (keys.token, keys.key):
        assert secret.encode() not in body["body"] and secret not in repr(keys)
    assert keys.address == f"{ORIGIN}/#token={keys.token}"


def test_the_token_works_once_and_the_key_for_every_load() -> None:
    keys = Keys(8000)
    assert entered(keys, token="wrong") is entered(keys) is entered(keys, token="", key="") is None
    first = entered(keys, token=keys.token)
    assert first is not None and first["key"] == keys.key != keys.token
    assert entered(keys, token=keys.token) is None, "a replayed token opens nothing"
    assert entered(keys, key=keys.token) is entered(keys, token=keys.key) is None
    second = entered(keys, key=keys.key)
    assert second is not None and second["prefix"] != first["prefix"]
    assert len(second["prefix"]) > 40


def test_a_prefix_serves_its_page_once() -> None:
    """The address of a load, seen or copied, opens nothing afterwards; its files and its websocket go on."""
    keys = Keys(8000)
    prefix = keys.new_prefix(key=keys.key)
    assert is_served(asked(keys, OURS, f"{prefix}/"))
    again = asked(keys, OURS, f"{prefix}/")
    assert b"/enter" in again[1]["body"]
    assert is_served(asked(keys, OURS, f"{prefix}/assets/louver.css"))


def test_no_answer_sets_a_cookie_and_none_is_asked_for() -> None:
    keys = Keys(8000)
    prefix = keys.new_prefix(token=keys.token)
    for path in ("/", "/enter", f"{prefix}/", "/other"):
        start = asked(keys, FROM_US, path)[0]
        assert b"set-cookie" not in dict(start["headers"])
    for held in (keys.token, keys.key):
        start = asked(keys, {**OURS, "cookie": f"louver-8000={held}"}, "/assets/louver.css")[0]
        assert start["status"] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "evil.example:8000"},
        {"host": "127.0.0.1"},
        {**OURS, "origin": "http://evil.example"},
        {**OURS, "origin": "null"},
        {**OURS, "origin": "https://127.0.0.1:8000"},
        {**OURS, "origin": "http://127.0.0.1:8001"},
        {**OURS, "origin": "http://localhost:8000"},
        {**OURS, "sec-fetch-site": "cross-site"},
        {**OURS, "sec-fetch-site": "same-site"},  # another port of this machine
        {**OURS, "sec-fetch-site": "none"},
        {**OURS, "Host": "127.0.0.1:8000"},  # a header that a repeated file
    ],
)
def test_everybody_else_is_refused(headers: dict[str, str]) -> None:
    """Even where they know the prefix, the key or the token."""
    keys = Keys(8000)
    prefix = keys.new_prefix(key=keys.key)
    secrets = {"x-louver-key": keys.key, "x-louver-token": keys.token}
    for path, method in ((f"{prefix}/", "GET"), (f"{prefix}/upload/1", "POST"), ("/enter", "POST")):
        start, _ = asked(keys, {**headers, **secrets}, path, method=method)
        assert start["status"] == 403
    assert entered(keys, token=keys.token) is not None, "what was refused used nothing up"


@pytest.mark.parametrize("path", ["/", "/enter", "/other/", "//", "", "/assets/louver.js", "/_nicegui_ws/"])
def test_nothing_lies_outside_a_prefix(path: str) -> None:
    keys = Keys(8000)
    keys.new_prefix(key=keys.key)
    assert not is_served(asked(keys, FROM_US, path))


def test_a_door_is_entered_by_a_page_of_ours_alone() -> None:
    keys = Keys(8000)
    start, _ = asked(keys, {**OURS, "x-louver-key": keys.key}, "/enter", method="POST")
    assert start["status"] == 403, "a browser says where a POST comes from"


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        (FROM_US, True),
        ({"host": "localhost:8000", "origin": "http://localhost:8000"}, True),
        (OURS, False),
        ({**OURS, "origin": "http://evil.example"}, False),
        ({**OURS, "origin": "http://127.0.0.1:8001"}, False),
        ({**OURS, "origin": "http://localhost:8000"}, False),
    ],
)
def test_websockets(headers: dict[str, str], is_let_in: bool) -> None:
    keys = Keys(8000)
    prefix = keys.new_prefix(key=keys.key)
    [sent] = asked(keys, headers, f"{prefix}/_nicegui_ws/", kind="websocket")
    assert sent["type"] == ("websocket.accept" if is_let_in else "websocket.close")
    for elsewhere in ("/_nicegui_ws/", f"/{keys.key}/_nicegui_ws/", f"{prefix}x/_nicegui_ws/"):
        [sent] = asked(keys, {**headers, "x-louver-key": keys.key}, elsewhere, kind="websocket")
        assert sent["type"] == "websocket.close"


def test_every_answer_has_its_headers() -> None:
    keys = Keys(8000)

    def answer() -> Any:
        return asked(keys, OURS, f"{keys.new_prefix(key=keys.key)}/")

    start, body = answer()
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
    assert nonce not in str(answer()), "a nonce is used once"

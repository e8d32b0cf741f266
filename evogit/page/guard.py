"""Keeps everybody but the person at this browser away from the page: other sites, other users, other programs.

What is checked, in the order of the checks, and why, is in docs/security.md.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evogit.page.assets import AGAIN, source_hash

CSP = "; ".join(
    [
        "default-src 'none'",
        f"script-src 'self' {source_hash(AGAIN)}",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)

HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

ENTRANCE = f"""<!doctype html><meta charset="utf-8"><title>EvoGit</title><script>{AGAIN}</script>
<script type="module" src="enter.js"></script><p>EvoGit: <a href="/">to the page</a>
"""
"""Answered to the link with the token: a redirect would lose the strict cookie where it was opened from a file, and the
script keeps the token for this port."""

KEY = "x-evogit"
"""The header with the token."""

LARGEST = 64_000  # bytes of what a browser may send
LONGEST = 4_000  # bytes of an address


class Guard:
    """An ASGI application that lets through what comes from the page itself, in the browser that has the token."""

    def __init__(self, app: ASGIApp, token: str, is_named: Callable[[str], bool], port: int) -> None:
        """`is_named`: whether this server may be called so; what it is asked is a Host header."""
        self._app = app
        self._token = token
        self._pass = hashlib.sha256(token.encode()).hexdigest()
        self._is_named = is_named
        self._cookie = f"evogit-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application do it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        answer = (
            None if self._is_named(host) else _refused(421, "expected the address that `evogit serve` printed as Host")
        )
        answer = answer or self._entrance(scope) or self._refusal(scope, headers, f"http://{host}")
        if answer is None and not (self._has_cookie(headers) and self._has_key(scope, headers)):
            answer = _refused(401, "open the address that `evogit serve` printed: it has the key to this page")

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await (answer or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str], own: str) -> Response | None:
        """Why not even who has the key is answered; `own`: the page's origin."""
        method = scope["method"]
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _refused(403, "this came from another site")
        if headers.get("origin", own) != own:
            return _refused(403, "expected the page's own origin")
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, "expected GET or POST")
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST:
            return _refused(414, f"expected an address of at most {LONGEST} bytes")
        if method != "POST":
            return None
        if "origin" not in headers:
            return _refused(403, "expected the page's own origin")
        if KEY not in headers:
            return _refused(403, "expected the header X-EvoGit")
        if headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refused(415, "expected application/json")
        length = headers.get("content-length", "")
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > LARGEST:
            return _refused(413, f"expected a body of at most {LARGEST} bytes, and its length")
        return None

    def _entrance(self, scope: Scope) -> Response | None:
        """Take the token for a cookie, also from another place: the file that `--open` opens is one."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return None
        told = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if not told or not hmac.compare_digest(told[0].encode(), self._token.encode()):
            return None
        answer = Response(ENTRANCE, media_type="text/html")
        answer.set_cookie(self._cookie, self._pass, httponly=True, samesite="strict", path="/")
        return answer

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        """Whether the cookie is among those sent; other servers of this machine may set others, even of its name."""
        wanted, sent = f"{self._cookie}={self._pass}".encode(), headers.get("cookie", "").encode("latin-1")
        return any(hmac.compare_digest(each.strip(), wanted) for each in sent.split(b";"))

    def _has_key(self, scope: Scope, headers: dict[str, str]) -> bool:
        """Whether the token is there, too, where anything is told: a browser sends a cookie to all servers of a host.

        A stream has it in its address, as browsers send no headers of a page's own with one.
        """
        if not scope["path"].startswith("/api"):
            return True
        told = headers.get(KEY) or parse_qs(scope["query_string"].decode("latin-1")).get("key", [""])[0]
        return hmac.compare_digest(told.encode(), self._token.encode())


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=status)

"""The door of the review page: who is let in, and what is answered to everybody else, over real connections."""

from __future__ import annotations

import base64
import gc
import hashlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from evogit.content import content
from evogit.page.app import MOST_FOLLOWED, Site
from evogit.page.guard import LARGEST
from evogit.page.payload import FollowedRun
from evogit.page.serving import Address
from evogit.repository import Repository
from evogit.testing import RecordedRun
from tests.clock import wait_until
from tests.page.guarding import RUN, Answer, Served, everything, read_answer, serving, small_run

ABOUT = f"/api/runs/{RUN}"

READS = (
    *("/", "/main.js", "/style.css", "/api/runs", ABOUT, f"{ABOUT}/block/0", f"{ABOUT}/search?text=step"),
    *(f"{ABOUT}/candidates/1", f"{ABOUT}/evaluation/1", f"{ABOUT}/session/1", f"{ABOUT}/diff/0/1"),
    *(f"{ABOUT}/report", f"{ABOUT}/decisions", f"{ABOUT}/events"),
)

DECISIONS = (
    *({"kind": kind, "index": 1, "reason": "why"} for kind in ("promote", "prune", "note", "land")),
    {"kind": "guide", "reason": "do this"},
    {"kind": "undo"},
    {"kind": "stop"},
    *({"kind": kind, "index": 1, "other": 5, "verdict": "a", "reason": "why"} for kind in ("merge", "graft", "judge")),
)

WITHIN = base64.b64encode(hashlib.sha256((content("graphs") / "again.js").read_bytes()).digest()).decode()

CSP = (
    f"default-src 'none'; script-src 'self' 'sha256-{WITHIN}'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(small_run(tmp_path_factory.mktemp("guard") / "own")) as server:
        yield server
        assert not server.decisions(), "somebody who must not decided something"


# --- who is let in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READS)
def test_the_page_itself_is_answered_and_strangers_are_not(served: Served, path: str) -> None:
    assert served.ask(path).status == 200
    for stranger in (served.ask(path, cookie=None), served.ask(path, cookie=None, sec_fetch_site=None)):
        assert stranger.status == 401
        assert b"evogit serve" in stranger.body
        assert RUN.encode() not in stranger.body


def test_decisions_of_strangers_are_not_even_planned(served: Served) -> None:
    assert served.decide().json["words"]
    for path in ("plan", "decide"):
        assert served.decide(path, cookie=None).status == 401


def test_the_token_gives_a_cookie_that_no_script_and_no_other_site_sees(served: Served) -> None:
    answer = served.enter(served.token)
    assert answer.status == 200  # not a redirect, which would lose the strict cookie
    name, *rest = answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"evogit-{served.port}=")
    assert {each.lower() for each in rest} == {"httponly", "path=/", "samesite=strict"}
    assert served.token.encode() not in answer.body


@pytest.mark.parametrize("token", ["x", "%00", "%ff", "a" * 43, "a" * 2000, "[]", "{}"])
def test_another_token_gives_nothing(served: Served, token: str) -> None:
    for path in (f"/?token={token}", f"/?token={token}&token={served.token}", f"/?token[]={served.token}"):
        answer = served.ask(path, cookie=None, sec_fetch_site="none")
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
    for part in (served.token[:-1], served.token + "a", served.token[::-1], served.token.swapcase()):
        assert served.enter(part).status == 401


@pytest.mark.parametrize("path", ["/main.js", "/api/runs", "//", "/index.html", "/%2F"])
def test_the_token_opens_the_front_door_only(served: Served, path: str) -> None:
    answer = served.ask(f"{path}?token={served.token}", cookie=None)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_the_token_elsewhere_gives_nothing(served: Served) -> None:
    told, name = served.token, f"evogit-{served.port}"
    assert served.ask("/api/runs", cookie=None, authorization=f"Bearer {told}", x_evogit=told).status == 401
    others = (f"evogit-{served.port + 1}={told}", f"{name}={told[:-1]}", f"Evogit-{served.port}={told}")
    for cookie in (f"token={told}", f"{name}={told}", *others):
        assert served.ask("/api/runs", cookie=cookie).status == 401


OTHERS = ['theme={"dark":true}', "a b=c d", "=x", "x", 'q="', f"{'y' * 3000}=1", "evogit-1=x", "\xff=\xfe", "{}="]


@pytest.mark.parametrize("other", [*OTHERS, "$Path=/;;,", "{name}=x"])
def test_cookies_of_other_servers_on_this_machine_lock_nobody_out(served: Served, other: str) -> None:
    """Also one of our name."""
    other = other.replace("{name}", served.cookie.partition("=")[0])
    for cookies in (f"{other}; {served.cookie}", f"{served.cookie}; {other}"):
        assert served.ask("/api/runs", cookie=cookies).status == 200
    assert served.ask("/api/runs", cookie=f"{other}; {other}").status == 401


@pytest.mark.slow
def test_yesterdays_cookie_and_address_open_nothing_today(tmp_path: Path) -> None:
    with serving(small_run(tmp_path / "own")) as yesterday:
        cookie, port = yesterday.cookie, str(yesterday.port)
    with serving(tmp_path / "own", "--port", port) as today:
        assert today.cookie.partition("=")[0] == cookie.partition("=")[0]
        assert today.ask("/api/runs", cookie=cookie).status == 401
        assert today.decide("decide", cookie=cookie).status == 401
        assert today.enter(yesterday.token).status == 401
        assert today.ask("/api/runs", cookie=f"{cookie}; {today.cookie}").status == 200


# --- other sites --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:{other}", "127.0.0.1:0{port}"),
        *("localhost.evil.example:{port}", "127.0.0.1:{port}.evil.example", "127.0.0.1.nip.example:{port}"),
        *("localhost.:{port}", "x@127.0.0.1:{port}", "127.0.0.1:{port}@x", "127.1:{port}", "2130706433:{port}"),
        *("0.0.0.0:{port}", "[::1]:{port}", "[::ffff:127.0.0.1]:{port}", "127.0.0.1:{port},evil.example", "", None),
    ],
)
def test_a_name_that_was_rebound_to_this_machine_is_refused(served: Served, host: str | None) -> None:
    told = host and host.format(port=served.port, other=served.port + 1)
    wanted = 400 if told is None else 421  # h11 itself wants one Host
    asked = [
        *(served.ask(path, host=told) for path in ("/api/runs", "/main.js")),
        served.enter(served.token, host=told),
    ]
    asked += [served.decide("decide", host=told), served.decide("decide", host=told, origin=f"http://{told}")]
    for answer in asked:
        assert answer.status == wanted
        assert "set-cookie" not in answer.headers


def test_the_page_answers_to_localhost_and_to_its_address_and_to_no_second_host(served: Served) -> None:
    for name in ("127.0.0.1", "localhost"):
        called = served.as_called(f"{name}:{served.port}")
        assert called.ask("/api/runs").status == 200
        assert called.decide().status == 200
    for second in ("evil.example", served.host):
        request = served.request("/api/runs").replace(b"\r\n", f"\r\nhost: {second}\r\n".encode(), 1)
        assert served.knock(request).status == 400


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin", "same-origin, none", "x"])
def test_what_a_browser_says_comes_from_another_site_is_refused(served: Served, site: str) -> None:
    for path in READS:
        assert served.ask(path, sec_fetch_site=site).status == 403
    assert served.ask(f"/?token={served.token}x", sec_fetch_site=site).status == 403
    assert served.decide(sec_fetch_site=site).status == 403
    assert served.decide("decide", sec_fetch_site=site).status == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://{host}", "http://{host}/", ""]
)
def test_what_a_browser_says_begins_elsewhere_is_refused(served: Served, origin: str) -> None:
    told = origin.format(host=served.host)
    for answer in (served.decide(origin=told), served.decide("decide", origin=told)):
        assert answer.status == 403
    for path in ("/api/runs", f"{ABOUT}/events", "/main.js"):  # browsers of before Sec-Fetch-Site
        assert served.ask(path, origin=told, sec_fetch_site=None).status == 403
    assert served.decide("decide", origin=None).status == 403


@pytest.mark.parametrize("told", [None, "", "0", "true", "1", "\xff"])
def test_a_decision_has_the_header_that_forms_cannot_send(served: Served, told: str | None) -> None:
    for path in ("plan", "decide"):
        assert served.decide(path, x_evogit=told).status == (403 if told is None else 401)


def test_the_cookie_alone_tells_nothing_as_browsers_send_it_to_all_servers_of_a_machine(served: Served) -> None:
    for path in READS:
        stolen = served.ask(path, x_evogit=None)
        assert stolen.status == (401 if path.startswith("/api") else 200)
    assert served.token not in served.cookie
    assert served.ask("/api/runs", x_evogit=served.cookie.partition("=")[2]).status == 401
    assert served.ask(f"/api/runs?key={served.cookie.partition('=')[2]}", x_evogit=None).status == 401
    assert served.ask(f"{ABOUT}/events?key={served.token}", x_evogit=None).status == 200
    assert served.ask(f"{ABOUT}/events?key={served.token}", x_evogit=None, cookie=None).status == 401


@pytest.mark.parametrize(
    "kind",
    [
        *("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", None, ""),
        *("text/plain; application/json", "application/jsonx", "text/json", "application/json-patch+json"),
    ],
)
def test_a_decision_is_no_form(served: Served, kind: str | None) -> None:
    for path in ("plan", "decide"):
        assert served.decide(path, content_type=kind).status == 415


def test_what_a_form_on_another_site_would_send_does_nothing(served: Served) -> None:
    """The worst case: an old browser that says nothing of where it comes from, and sends the cookie along."""
    form = {"content_type": "text/plain", "x_evogit": None, "sec_fetch_site": None}
    assert served.decide("decide", origin="http://evil.example", **form).status == 403
    assert served.decide("decide", origin=None, **form).status == 403


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get", "X"])
def test_no_preflight_is_answered_and_no_other_method_known(served: Served, method: str) -> None:
    asking = {"origin": "http://evil.example", "sec_fetch_site": None, "access_control_request_method": "POST"}
    for changes in (asking, {"origin": served.origin}):
        for path in ("/", "/api/runs", f"{ABOUT}/decide"):
            answer = served.ask(path, method, **changes)  # type: ignore[arg-type]
            assert answer.status in (403, 405)
            assert not any(name.startswith("access-control") for name in answer.headers)


def test_reads_are_not_posted_and_decisions_are_not_read(served: Served) -> None:
    assert served.ask(ABOUT, "POST", b"{}").status == 405
    assert served.ask(f"{ABOUT}/decide").status == 405
    assert served.ask(f"{ABOUT}/plan?kind=stop").status == 405


# --- what is answered ---------------------------------------------------------------------------------------------


def assert_guarded(answer: Answer) -> None:
    wanted = {
        "content-security-policy": CSP,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    assert {name: answer.headers.get(name) for name in wanted} == wanted
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert "server" not in answer.headers


def test_every_answer_has_the_headers_that_keep_it_in(served: Served) -> None:
    answers = [served.ask(path) for path in READS]
    answers += [served.enter(served.token), served.ask("/", cookie=None), served.ask("/", sec_fetch_site="cross-site")]
    answers += [served.ask("/", host="evil.example"), served.ask("/nowhere"), served.ask("/", "OPTIONS")]
    answers += [
        served.decide(),
        served.decide(told=b"["),
        served.decide(x_evogit=None),
        served.ask(ABOUT, "POST", b"{}"),
    ]
    for answer in answers:
        assert_guarded(answer)
    assert {answer.status for answer in answers} == {200, 400, 401, 403, 404, 405, 421}


@pytest.mark.parametrize(
    "path",
    [
        *("/../pyproject.toml", "/..%2fpyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/.git/config", "/README.md"),
        *("/main.js%00", "//etc/passwd", "/./main.js", "/main.js/", "/style.css/../index.html", "/%2fetc%2fpasswd"),
        *("/..\\index.html", "/api", "/API/RUNS", "http://evil.example/api/runs", "*"),
        *(f"/api/runs/{name}" for name in ("..%2f..", "%2e%2e/report", f"{RUN}%2f..%2f{RUN}", "x%00", "%ff", "-C")),
        *(f"/api/runs/{name}" for name in ("refs", "x" * 5000, "", "toy/")),
        *(f"{ABOUT}/candidates/{index}" for index in (-1, "1e3", 6, 10**30, "9" * 5000)),
        *(f"{ABOUT}/{path}" for path in ("diff/0/none", "diff/0/6", f"block/{'9' * 5000}", "block/%D9%A3")),
    ],
)
def test_paths_lead_nowhere_but_to_what_there_is(served: Served, path: str) -> None:
    answer = served.ask(path)
    assert answer.status in (307, 404, 414), answer.body
    assert "location" not in answer.headers or answer.headers["location"].startswith(f"{served.origin}/")
    assert b"root:" not in answer.body
    assert b"[project]" not in answer.body


@pytest.mark.parametrize("after", ["", "-1", "x", "9" * 3000, "%D9%A3", "1e9", "%00", "0x10"])
def test_a_stream_begins_from_any_position(served: Served, after: str) -> None:
    assert served.ask(f"{ABOUT}/events?after={after}").status == 200
    if after.isascii() and "%" not in after:
        assert served.ask(f"{ABOUT}/events", last_event_id=2 * after).status == 200


@pytest.mark.parametrize(
    "told",
    [
        *(b"", b"[", b"[]", b"1", b"null", b'"x"', b"[" * 60_000, b"\xff\xfe", b'{"kind": NaN}', b"1" * 60_000),
        *({}, {"kind": []}, {"kind": {}}, {"kind": "promote"}, {"kind": "rm", "index": 1}),
        *({"kind": "promote", "index": each} for each in (True, -1, 6, 1.0, "1", None, [], 10**400, float("inf"))),
        *({"kind": "note", "index": 1, "reason": each} for each in (5, None, [], "x" * 2001)),
        *({"kind": "undo", "decision": each} for each in (5, [], {}, "x" * 5000, "0" * 40)),
        *({"kind": "merge", "index": 1, "other": each} for each in (None, "x", 99)),
        {"kind": "stop"},
    ],
    ids=lambda told: str(told)[:40],
)
def test_nonsense_is_refused_with_a_sentence(served: Served, told: object) -> None:
    for path in ("plan", "decide"):
        answer = served.decide(path, told)
        assert answer.status in (400, 404, 409), answer.body
        assert 0 < len(answer.json["error"]) < 1000


def test_a_decision_without_its_plan_is_refused_and_told_the_plan(served: Served) -> None:
    for digest in (None, "", "x", [], 5):
        answer = served.decide("decide", {"kind": "promote", "index": 1, "reason": "why", "digest": digest})
        assert answer.status == 409
        assert answer.json["plan"]["words"]


# --- bodies, connections, streams ---------------------------------------------------------------------------------


def test_a_body_is_short_and_says_its_length(served: Served) -> None:
    for path in ("plan", "decide"):
        assert served.decide(path, b"x" * (LARGEST + 1)).status == 413
        assert served.decide(path, content_length=None).status == 413
        assert served.decide(path, content_length=str(LARGEST + 1)).status == 413
        assert served.decide(path, content_length="9" * 19).status == 413


def test_a_body_in_chunks_is_refused_whatever_length_it_claims(served: Served) -> None:
    """Both at once is how a request is hidden in another one, and how a body would have no limit."""
    for length in (None, "2", "0"):
        answer = served.decide("decide", b"2\r\n{}\r\n0\r\n\r\n", transfer_encoding="chunked", content_length=length)
        assert answer.status in (400, 411, 413)


@pytest.mark.parametrize(
    "headers",
    [
        *("content-length: 2\r\ncontent-length: 200", "content-length: +2", "content-length: 0x2"),
        *("content-length: -2", "transfer-encoding: xchunked", "transfer-encoding: chunked, identity"),
        *("transfer-encoding : chunked", "x: y\r\n z: folded", "x\x00: y", "x y: z"),
    ],
)
def test_requests_that_two_readers_would_read_differently_are_refused(served: Served, headers: str) -> None:
    request = served.request(f"{ABOUT}/decide", "POST", b"{}").replace(b"content-length: 2", headers.encode())
    answer = served.knock(request)
    assert answer.status in (400, 411, 413, 501)


def test_a_body_is_not_read_as_the_next_request(served: Served) -> None:
    hidden = served.request(f"{ABOUT}/decide", "POST", b'{"kind": "guide", "reason": "x"}')
    strange: list[dict[str, str | None]] = [{"cookie": None}, {"x_evogit": None}]
    for changes in (*strange, {"sec_fetch_site": "cross-site"}, {"content_type": "text/plain"}):
        request = served.request(f"{ABOUT}/plan", "POST", hidden, connection="close", **changes)
        with served.connect() as connection:
            connection.sendall(request)
            assert everything(connection).count(b"HTTP/1.1 ") == 1


def test_each_request_of_a_connection_shows_its_own_key(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(served.request("/main.js") + served.request("/api/runs", cookie=None, connection="close"))
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 401" in told


def test_headers_are_limited(served: Served) -> None:
    assert served.ask("/api/runs", x="y" * 50_000).status == 200
    assert served.ask("/?" + "x" * 5_000).status == 414
    long = 1_000_000
    for request in (served.request("/api/runs", x="y" * long), served.request("/" + "x" * long), b"x" * long):
        with served.connect() as connection, suppress(ConnectionError):  # it does not listen to the end
            connection.sendall(request)
            assert b"HTTP/1.1 200" not in everything(connection)


def test_slow_and_silent_connections_hold_nobody_up(served: Served) -> None:
    request = served.request(f"{ABOUT}/plan", "POST", b"x" * 1000)
    with ExitStack() as slow:
        for k in range(60):
            slow.enter_context(served.connect()).sendall((request[:-500], request[:40], b"")[k % 3])
        assert served.ask("/api/runs").status == 200
        assert served.decide().status == 200


def test_many_streams_hold_nobody_up_and_leave_nothing(served: Served) -> None:
    served.ask(ABOUT)
    before = descriptors(served)
    with ExitStack() as streams:
        for _ in range(80):
            connection = streams.enter_context(served.connect())
            connection.sendall(served.request(f"{ABOUT}/events"))
            assert read_answer(connection).status == 200
        assert descriptors(served) >= 80
        assert served.ask("/api/runs").status == 200
    wait_until(lambda: descriptors(served) <= before, "the end of the streams")


def descriptors(served: Served) -> int:
    return len(list(Path(f"/proc/{served.process.pid}/fd").iterdir()))


@pytest.mark.slow
def test_runs_that_nobody_looks_at_are_not_kept_in_memory_for_ever(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path)
    for number in range(2 * MOST_FOLLOWED):
        RecordedRun(repository, f"r{number}").add_files({"a.py": b"1"}, value=1.0)
    site = Site(repository, None, read_only=True)
    with TestClient(site.app()) as client:
        for number in range(2 * MOST_FOLLOWED):
            assert client.get(f"/api/runs/r{number}").status_code == 200
        assert client.get("/api/runs/r0").status_code == 200
    gc.collect()
    assert sum(isinstance(each, FollowedRun) for each in gc.get_objects()) == MOST_FOLLOWED


def test_no_web_socket_is_opened(served: Served) -> None:
    asking = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
    asking |= {"sec_websocket_key": "eA=="}
    answer = served.ask("/api/runs", cookie=None, **asking)
    assert answer.status == 401
    assert served.ask("/api/runs", **asking).status != 101


@pytest.mark.slow
def test_a_page_for_other_machines_is_called_by_numbers_and_by_this_machines_name(tmp_path: Path) -> None:
    with serving(small_run(tmp_path / "own"), "--host", "0.0.0.0") as served:
        assert served.host == f"127.0.0.1:{served.port}"
        for name in ("127.0.0.1", "192.168.7.8", "[::1]", "[fe80::1]", "localhost", socket.gethostname().lower()):
            assert served.ask("/api/runs", host=f"{name}:{served.port}").status == 200
        for name in ("evil.example", "127.0.0.1.nip.example", "1.2.3", "999.1.1.1", "evil.example:1", ""):
            assert served.ask("/api/runs", host=f"{name}:{served.port}").status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_the_port_that_browsers_do_not_name_may_be_missing(host: str) -> None:
    address = Address(host=host, port=80, token="x")
    assert address.is_named("127.0.0.1")
    assert address.is_named(address.url.split("/")[2])
    assert address.is_named("[::1]") == (host == "::1")
    assert not address.is_named("evil.example")


# --- read only ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--read-only"], ["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--read-only"]])
def test_a_page_that_is_read_only_decides_nothing(tmp_path: Path, options: list[str]) -> None:
    with serving(small_run(tmp_path / "own"), *options) as served:
        assert served.ask(ABOUT).json["read_only"]
        for told in DECISIONS:
            for path in ("plan", "decide"):
                answer = served.decide(path, told)
                assert answer.status == 409
                assert "read only" in answer.json["error"]
        assert not served.decisions()

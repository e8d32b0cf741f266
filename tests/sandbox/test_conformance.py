"""What every provider must do; see the protocols in evogit/sandbox/__init__.py."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator

import pytest

from evogit.core import SandboxError
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from tests.clock import wait_until

COUNTER = "count = 0\ndef up():\n    global count\n    count += 1\n    return count\n"


def test_call_passes_arguments_and_returns_json(open_session, ask):
    session = open_session("def f(a, b=0): return {'sum': a + b, 'pair': (a, b)}")
    reply = session.call("m:f", b'{"args": [1], "kwargs": {"b": 2}}')
    assert json.loads(reply.value) == {"sum": 3, "pair": [1, 2]}
    assert reply.failure == ""
    assert reply.usage.cpu > 0
    assert reply.usage.wall > 0
    assert reply.usage.memory > 1 << 20


def test_no_call_item_or_command_took_no_cpu_at_all(open_session):
    session = open_session("def f(n): return sum(range(n))\ndef one(n): return n")
    calls = [session.call("m:f", b'{"args": [%d]}' % n).usage.cpu for n in [1, 20_000] * 50]
    items = [reply.usage.cpu for reply in session.stream("m:one", [b"1"] * 100)]
    assert min(*calls, *items, session.run(["true"]).usage.cpu) > 0
    assert sum(calls[1::2]) > sum(calls[::2])


def test_the_interpreter_is_there_as_python_too(open_session):
    session = open_session("import sys; print(sys.version_info[:2], sys.prefix)")
    plain, named = (session.run([program, "m.py"]) for program in ("python", "python3"))
    assert (plain.code, plain.stdout) == (0, named.stdout)


def test_large_arguments_and_values_cross(open_session, ask):
    session = open_session("def echo(text): return text")
    text = "x" * 5_000_000
    assert ask(session, "echo", text) == text


def test_state_stays_between_calls_until_fresh(open_session, ask):
    session = open_session(COUNTER)
    assert [ask(session, "up"), ask(session, "up"), ask(session, "up", fresh=True)] == [1, 2, 1]


def test_exception_is_a_crash_with_its_story_and_ends_the_process(open_session, ask):
    session = open_session(COUNTER + "def bad(): raise ValueError('no luck')")
    ask(session, "up")
    reply = ask(session, "bad")
    assert reply.failure == "crashed"
    assert "raised ValueError: no luck" in reply.detail
    assert "m.py" in reply.detail
    assert b"Traceback" in session.output()[1]
    assert ask(session, "up") == 1


CRASHES = {
    "import os; os._exit(0)": "exited with code 0 before replying in call 1",
    "import os; os.kill(os.getpid(), 11)": "was killed by SIGSEGV before replying in call 2",
    "raise SystemExit(0)": "raised SystemExit: 0",
    "import missing_module": "raised ModuleNotFoundError",
}


def test_ways_to_crash(open_session, ask):
    session = open_session("".join(f"def f{number}():\n    {body}\n" for number, body in enumerate(CRASHES)))
    for number, sentence in enumerate(CRASHES.values()):
        reply = ask(session, f"f{number}")
        assert reply.failure == "crashed"
        assert reply.detail.startswith(sentence)


def test_what_json_cannot_say_is_invalid(open_session, ask):
    values = ["float('nan')", "{1, 2}", "object()", "[[b'bytes']]"]
    session = open_session("".join(f"def f{number}(): return {value}\n" for number, value in enumerate(values)))
    for number in range(len(values)):
        reply = ask(session, f"f{number}")
        assert (reply.failure, reply.value) == ("invalid", b"")
        assert "JSON cannot say" in reply.detail


def test_stream_is_lazy_and_ends_with_a_failure(open_session):
    session = open_session("def f(x): return 1 / x")
    sent = []

    def items() -> Iterator[bytes]:
        for item in (1, 2, 0, 4):
            sent.append(item)
            yield b"%d" % item

    replies = session.stream("m:f", items())
    assert next(replies).value == b"1.0"
    assert sent == [1]
    assert [reply.failure for reply in replies] == ["", "crashed"]
    assert sent == [1, 2, 0]


def test_output_of_calls_is_collected_in_order(open_session, ask):
    session = open_session("import sys\ndef f(n):\n    print('out', n)\n    print('err', n, file=sys.stderr)")
    ask(session, "f", 1)
    ask(session, "f", 2)
    assert session.output() == (b"out 1\nout 2\n", b"err 1\nerr 2\n")


def test_too_much_output_or_too_large_a_reply_is_a_breach(open_session, ask):
    reply = ask(open_session("def f(): return 'x' * 2000", reply=1000), "f")
    assert (reply.failure, reply.detail) == ("output-limit", "replied with 2002 bytes, more than the 1000 allowed")
    session = open_session("def f():\n    while True: print('x' * 1000)", output=10_000)
    assert ask(session, "f").failure == "output-limit"
    assert session.output()[0].endswith(b"x\n[cut after 10000 bytes]\n")


def test_wall_clock_limit(open_session, ask):
    session = open_session("import time\ndef nap(): time.sleep(3600)\ndef f(): return 1")
    reply = ask(session, "nap", wall=0.2)
    assert (reply.failure, reply.detail) == ("timeout", "killed after 0.2 s of wall clock in call 1")
    assert ask(session, "f") == 1


def test_cpu_limit_names_the_call(open_session, ask):
    session = open_session("def spin():\n    while True: pass\ndef f(): return 1")
    ask(session, "f")
    reply = ask(session, "spin", cpu=0.2)
    assert (reply.failure, reply.detail) == ("timeout", "killed after 0.2 s of CPU in call 2")
    assert reply.usage.cpu >= 0.2


@pytest.mark.slow
def test_cpu_counts_imports_children_and_idle_work(open_session, ask):
    """The program counts along: what is charged is what it used, twice that at most."""
    source = """
import os, threading, time
def burn(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
burn(0.1)
def f(): return sum(os.times()[:4])  # in ticks of 10 ms
def child():
    if os.fork() == 0:
        burn(0.4)
        os._exit(0)
    os.wait()
    return f()
def idle():
    threading.Thread(target=burn, args=(0.1,)).start()
    return f()
"""
    session = open_session(source)
    charged = [0.0]

    def ask_of(function: str) -> float:
        reply = session.call(f"m:{function}", b"{}")
        charged[0] += reply.usage.cpu
        return json.loads(reply.value)

    assert 0.05 < ask_of("f") <= charged[0] + 0.05
    assert 0.45 < (before := ask_of("child")) <= charged[0] + 0.05
    ask_of("idle")
    wait_until(lambda: ask_of("f") >= before + 0.09)
    own = ask_of("f")
    assert own - 0.05 <= charged[0] < 2 * own


def test_memory_in_use_is_limited_and_measured(open_session, ask):
    assert ask(open_session("def f(): return len(bytes(10 ** 12))"), "f").failure == "out-of-memory"
    session = open_session("kept = []\ndef f(n):\n    kept.append(b'x' * n)\n    return len(kept)", memory=100 << 20)
    reply = session.call("m:f", b'{"args": [50000000]}')
    assert 48_000_000 < reply.usage.memory < 80_000_000
    assert ask(session, "f", 60_000_000).failure == "out-of-memory"


def test_pages_shared_since_a_fork_count_once(open_session, ask):
    source = """
import os, time
big = b"x" * 60_000_000
def f():
    pids = [os.fork() for _ in range(3)]
    if 0 in pids:
        time.sleep(0.2)
        os._exit(0)
    time.sleep(0.1)
    return 1
"""
    assert ask(open_session(source, memory=150 << 20, processes=20), "f") == 1


@pytest.mark.slow
def test_memory_of_a_program_that_starts_a_command_counts_once(open_session, ask):
    source = """
import subprocess
big = bytearray(90_000_000)
for place in range(0, len(big), 4096): big[place] = 1
def f():
    for _ in range(200): subprocess.run(["true"])
    return 1
"""
    assert ask(open_session(source, memory=150 << 20), "f") == 1


def test_all_requests_together_are_limited(open_session):
    session = open_session("import time\ndef f(x): time.sleep(0.5)", total=0.9)
    *done, last = session.stream("m:f", iter([b"1"] * 9))
    assert {reply.failure for reply in done} <= {""}
    assert len(done) < 3
    assert (last.failure, last.detail) == ("timeout", "took 0.9 s in all")
    assert session.run(["true"]).breach == "timeout"


def test_disk_and_process_limits(open_session, ask):
    source = """
import subprocess, time
def disk():
    with open("big", "wb") as file:
        for _ in range(100): file.write(b"x" * (1 << 20))
def processes():
    for _ in range(30): subprocess.Popen(["sleep", "9"])
    time.sleep(9)
"""
    assert ask(open_session(source, disk=20 << 20), "disk").failure == "disk-limit"
    assert ask(open_session(source, processes=10), "processes").failure == "process-limit"


def test_run_takes_stdin_and_files_and_gives_output_and_files(open_session):
    session = open_session("import sys\nprint(sys.stdin.read() + open('d/in').read())\nopen('out', 'w').write('made')")
    done = session.run(["python3", "m.py"], stdin=b"a" * 100_000, files={"d/in": b"b"}, out=["out", "absent"])
    assert (done.code, done.signal, done.breach) == (0, None, None)
    assert done.stdout == b"a" * 100_000 + b"b\n"
    assert done.files == {"out": b"made"}
    assert done.usage.cpu > 0.001


def test_how_a_run_ends(open_session):
    session = open_session()
    for argv, code, signal in (
        (["sh", "-c", "exit 3"], 3, None),
        (["sh", "-c", "kill -15 $$"], None, 15),
        (["no-such-program"], 127, None),
        (["./m.py"], 126, None),
    ):
        done = session.run(argv)
        assert (done.code, done.signal) == (code, signal)


def test_run_limits(open_session):
    session = open_session(output=1000)
    late = session.run(["sleep", "3600"], wall=0.2)
    assert (late.code, late.breach) == (None, "timeout")
    loud = session.run(["sh", "-c", "while :; do echo xxxxxxxxx; done"])
    assert (loud.code, loud.breach) == (None, "output-limit")
    assert loud.stdout == b"xxxxxxxxx\n" * 100 + b"\n[cut after 1000 bytes]\n"


def test_run_replaces_what_the_program_put_in_the_way(open_session):
    session = open_session()
    session.run(["ln", "-s", "m.py", "in"])
    assert session.run(["cat", "in"], files={"in": b"data"}).stdout == b"data"
    assert session.run(["test", "-s", "m.py"]).code == 1
    session.run(["mkdir", "dir"])
    assert session.run(["true"], files={"dir": b"data"}).code == 126


def test_paths_outside_the_folder_are_refused(open_session):
    session = open_session()
    for path in ("/etc/passwd", "../m.py", "a/../../b", "a//b", ""):
        with pytest.raises(SandboxError, match="relative to the candidate's folder"):
            session.run(["true"], files={path: b""})
        with pytest.raises(SandboxError, match="relative to the candidate's folder"):
            session.run(["true"], out=[path])


def test_archive_keeps_executables_links_and_folders(sandbox):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, kind, mode, target in (
            ("bin/tool", tarfile.REGTYPE, 0o755, ""),
            ("link", tarfile.SYMTYPE, 0o777, "bin/tool"),
            ("empty", tarfile.DIRTYPE, 0o755, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type = kind
            member.mode = mode
            member.linkname = target
            text = b"#!/bin/sh\nls -d empty\n" if kind == tarfile.REGTYPE else b""
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    with sandbox.open(archive.getvalue(), Limits()) as session:
        assert session.run(["./link"]).stdout == b"empty\n"


@pytest.mark.parametrize("files", [{"../up": b""}, {"/abs": b""}, {"a": b"", "a/b": b""}])
def test_archives_that_leave_the_folder_are_refused(sandbox, files):
    with pytest.raises(SandboxError, match="expected"):
        sandbox.open(pack(files), Limits())


@pytest.mark.parametrize("files", [{"a" * 300: b""}, {"a/" + "\u00fc" * 200: b""}])
def test_files_that_cannot_be_written_are_the_programs_failure(sandbox, files):
    with sandbox.open(pack({"m.py": b"def f(): return 1", **files}), Limits()) as session:
        for _ in range(2):
            reply = session.call("m:f", b"{}")
            assert reply.failure == "crashed"
            assert "its files cannot be unpacked: [Errno 36] File name too long" in reply.detail
        assert session.run(["true"]).signal == 9


def test_preloaded_modules_are_there_at_once_and_a_missing_one_is_the_sandbox_s_fault(open_session, ask):
    session = open_session("import sys\nready = 'decimal' in sys.modules\ndef f(): return ready", preload=("decimal",))
    assert ask(session, "f") is True
    with pytest.raises(SandboxError, match="No module named 'no_such_module'"):
        open_session(preload=("no_such_module",))


def test_ordinary_programs_work(open_session, ask):
    source = """
import concurrent.futures, multiprocessing, os, shutil, socket, subprocess, tempfile, threading
def square(x): return x * x
def pool():
    with multiprocessing.Pool(2) as pool: return pool.map(square, range(4))
def threads():
    with concurrent.futures.ThreadPoolExecutor(4) as pool: return list(pool.map(square, range(4)))
def shell(): return subprocess.run(["sh", "-c", "echo hi"], capture_output=True, text=True, check=True).stdout
def loopback():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    server.accept()[0].sendall(b"hi")
    return client.recv(9).decode()
def temporary():
    with tempfile.TemporaryDirectory() as folder: return len(os.listdir(folder))
def value():
    shared = multiprocessing.Value("i", 0)
    worker = multiprocessing.Process(target=lambda: setattr(shared, "value", 7))
    worker.start(); worker.join()
    return shared.value
"""
    session = open_session(source)
    assert ask(session, "pool") == ask(session, "threads") == [0, 1, 4, 9]
    assert ask(session, "shell") == "hi\n"
    assert ask(session, "loopback") == "hi"
    assert ask(session, "temporary") == 0
    assert ask(session, "value") == 7


def test_programs_see_a_small_fixed_environment(open_session, ask, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    names = set(ask(open_session("import os\ndef f(): return sorted(os.environ)"), "f"))
    assert names - {"PWD", "LC_CTYPE"} == {
        "HOME", "LANG", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
        "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "TMPDIR",
    }  # fmt: skip


def test_sessions_see_nothing_of_each_other(open_session, ask):
    source = "import glob, os\ndef leave():\n    open(os.environ['TMPDIR'] + '/left', 'w')\n    open('left', 'w')\n"
    source += "def look(): return glob.glob(os.environ['TMPDIR'] + '/*') + glob.glob('left')"
    ask(open_session(source), "leave")
    assert ask(open_session(source), "look") == []


def test_closed_session_says_so(open_session, ask):
    session = open_session("def f(): return 1")
    session.close()
    reply = ask(session, "f")
    assert (reply.failure, reply.detail) == ("crashed", "not done: the session was closed")
    assert session.run(["true"]).signal == 9


def test_image_is_stable_and_names_the_provider(sandbox):
    assert sandbox.image() == type(sandbox)().image()
    assert sandbox.image().startswith(sandbox.name)


DEEP = """
import os
open("good", "w").write("kept")
for _ in range({depth}):
    os.mkdir("d")
    os.chdir("d")
open("bottom", "w").close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1500, 5000])
def test_what_is_beside_folders_of_any_depth_can_be_had(open_session, depth):
    session = open_session()
    assert session.run(["python3", "-c", DEEP.format(depth=depth)]).code == 0
    reply, entries, contents = session.salvage(1 << 20, [".git"])
    assert not reply.failure
    kinds = {path: kind for path, kind, *_ in entries if path.count("/") < 100}
    assert kinds.items() <= {"m.py": "file", "good": "file"}.items()
    assert b"kept" in contents
    assert len(entries) == len(kinds) + 1


LITTER = """
mkdir -p .git/objects kept/deep; echo 1 > .git/config; echo new > kept/deep/a
echo x > m.py; ln -s /etc/passwd link; mkfifo pipe
printf x > "$(printf 'bad\\377')"; printf secret > closed; chmod 000 closed
mkdir shut; echo 1 > shut/f; chmod 000 shut
head -c 3000000 /dev/urandom > large; [ "$1" = full ] && head -c 90000000 /dev/urandom > rubbish; sleep 0.2
"""


@pytest.mark.parametrize("how", ["calm", "full"])
def test_what_can_be_had_of_a_folder_can_be_had_even_of_a_full_one(open_session, how):
    session = open_session(disk=32 << 20)
    done = session.run(["sh", "-c", LITTER, "sh", how])
    assert (done.breach == "disk-limit") == (how == "full")
    reply, entries, contents = session.salvage(1 << 20, [".git"])
    assert not reply.failure
    kinds = {path: kind for path, kind, *_ in entries}
    assert kinds.pop("rubbish", "other") == "other"
    closed = kinds.pop("closed")
    assert closed in ("file", "other")  # the provider `none` is root here
    assert (kinds.pop("shut", ""), kinds.pop("shut/f", "")) in {("other", ""), ("", "file")}
    assert kinds == {"m.py": "file", "kept/deep/a": "file", "link": "link", "pipe": "other", "large": "other"}
    assert b"new\n" in contents
    assert b"/etc/passwd" in contents

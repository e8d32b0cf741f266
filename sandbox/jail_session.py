"""One life of a candidate: starts the untrusted program, measures it, limits it, and speaks for it.

Whatever the program writes is only ever its value, its output or a file that was asked for.
"""

import contextlib
import errno
import functools
import json
import os
import time

from jail_bytes import LENGTH, Broken, pieces, receive, send
from jail_calls import BINARY, FINISHED, READY, VALUE, answer_calls
from jail_cgroup import CgroupMeter
from jail_files import pack, read_files, remove, unpack, write_files
from jail_keeper import TICK, Keeper
from jail_program import FORGED, command
from jail_words import ending, refusal

LONGEST_DETAIL = 4000  # characters; the host takes no header of more than 64 KiB
LARGE = 1 << 11  # bytes of arguments that are worth a message more, so that the time to read them is known
GO_ON = b"g"  # what a call waits for
LEAST, UNSEEN = 1e-6, 0.01  # seconds of CPU: what has not run, and what the coarsest clock (gVisor's) may not have seen


class Supervisor(Keeper):
    """Answers the host's requests one after another."""

    def __init__(self, place):
        super().__init__(place)
        self.unfit = None
        self.calls = self.runs = 0
        self.stirred = False
        self.held = {}
        self.binary, self.phases = False, None
        self.counted = isinstance(self.meter, CgroupMeter)

    def serve(self):
        """Answer requests until the host closes the session, or goes away."""
        answers = {
            "hold": self.hold,
            "call": self.call,
            "feed": self.feed,
            "run": self.run,
            "start": self.start_server,
            "connect": self.connect,
            "exchange": self.exchange,
            "explain": self.explain,
            "pack": self.pack,
        }
        try:
            self.furnish()
            self.open(*receive())
            while True:
                self.await_request()
                header, body = receive(self.prepare)
                if header["do"] == "close":
                    break
                self.began = time.monotonic()
                self.cpu = header["cpu"]
                self.wall = header["wall"]
                self.captures = self.stdout, self.stderr
                send(*answers[header["do"]](header, body))
                self.broken = None
        finally:
            self.end_all()
        self.close()

    def furnish(self):
        """Make the session's place and put the base there, before anybody waits for it."""
        with self.unpacking():
            self.place.furnish()
        with self.place.acting():
            self.folder = os.open(f"{self.place.box}/work", os.O_RDONLY | os.O_DIRECTORY)

    def open(self, header, body):
        """Put the candidate's own files there."""
        self.seed, work = header["seed"], f"{self.place.box}/work"
        with self.unpacking():
            remove(work, header["removed"])
            unpack(work, header["files"], body)

    @contextlib.contextmanager
    def unpacking(self):
        """The context in which files are unpacked; when it fails, the first request will say so."""
        try:
            with self.place.acting():
                yield
        except (OSError, ValueError) as error:  # such as a name too long
            full = getattr(error, "errno", 0) == errno.ENOSPC
            self.unfit = Broken("disk-limit" if full else "crashed", f"its files cannot be unpacked: {error}")

    def close(self):
        """End the session; the host is told whether another one may follow here."""
        os.close(self.folder)
        self.tunnels.close()
        unfit = "the kernel ended processes for lack of memory" if self.meter.ended_for_memory() else self.place.clear()
        send({"closed": True, "unfit": unfit})

    # --- requests -------------------------------------------------------------------------------------------------

    def hold(self, header, body):
        """Keep a value for calls to come; the answer's body is empty."""
        failure = {}
        try:
            self.check_broken()
            self.held[header["number"]] = header["about"], body
        except Broken as broken:
            failure = self.fail(broken)
        return self.plain_answer(failure)

    def call(self, header, body):
        """Have the program's process call a function; the answer's body is the value and the new output."""
        self.calls += 1
        self.doing = f"in call {self.calls}"
        value, failure, asked = b"", {}, {name: header[name] for name in ("target", "given", "held")}
        try:
            value = self.value_of_call(header["fresh"], asked, body)
        except Broken as broken:
            failure = self.fail(broken)
        parts = value, self.stdout.news(), self.stderr.news()
        told = {"binary": self.binary, "phases": self.phases}
        return {**failure, **self.charged(), **told, "sizes": list(map(len, parts))}, b"".join(parts)

    def prepare(self, header):
        """Before the items of a `feed` are in our memory, of which a new process gets a copy: start it."""
        if header["do"] == "feed" and not self.program and not (self.unfit or self.broken):
            self.program = self.start_answering()

    def feed(self, header, body):
        """Call a function with one item after the other; the next is shown once the last was answered."""
        values, shares, failure = [], [], {}
        until, (about, *items) = self.began + header["total"], pieces(body)
        about = json.loads(bytes(about))
        asked = {"target": about["target"], "given": [], "held": []}
        for item in items:
            self.calls += 1
            self.began = time.monotonic()
            self.doing = f"in item {about['first'] + len(values)} of {about['of']}"
            value = b""
            try:
                if self.began > until:
                    raise Broken("timeout", f"took {self.limits['total']:g} s in all")
                text = b'{"args":[%b]}' % item
                value = self.value_of_call(False, asked, LENGTH.pack(len(text)) + text)
            except Broken as broken:
                failure = self.fail(broken)
            values.append(value)
            shares.append([*self.charged().values(), self.binary, self.phases])
            if failure:
                break
        body[:] = bytes(len(body))
        parts = *values, self.stdout.news(), self.stderr.news()
        answer = {"shares": shares, "sizes": list(map(len, parts)), "cpu": 0, "memory": 0, "wall": 0, "waited": 0}
        return {**failure, **answer}, b"".join(parts)

    def value_of_call(self, fresh, asked, given):
        """The JSON text of the value, or pieces of a binary one; raises Broken where there is none."""
        self.check_broken()
        self.binary, self.phases = False, None
        if fresh:
            self.kill_all()
        program = self.program = self.program or self.start_answering()
        clean = not program.asked and (fresh or not self.stirred)
        program.drain()
        if program.answer.data:
            raise Broken("invalid", f"wrote to the reply channel before it was asked {self.doing}")
        message = self.message(program, asked, given)
        program.asked = self.stirred = True
        kind, content = self.timed(program, LENGTH.pack(len(message)) + message, clean, fresh)
        if kind in (READY, FINISHED):
            raise Broken("invalid", FORGED)
        if kind not in (VALUE, BINARY):
            raise refusal(kind, content.decode(errors="replace"), self.limits, self.doing)
        self.binary = kind == BINARY
        return content

    def message(self, program, asked, given):
        """What a program is sent of a call: what is asked, and pieces; values that are held once, when first needed."""
        if not (asked["given"] or asked["held"]):
            large = len(given) >= LARGE
            order = order_of(asked["target"], large or not program.asked, large)
            return LENGTH.pack(len(order)) + order + given
        new = {number: self.held[number] for _, number in asked["held"] if number not in program.held}
        program.held.update(new)
        held = b"".join(LENGTH.pack(len(content)) + content for _, content in new.values())
        forms = [[number, about] for number, (about, _) in new.items()]
        large = len(given) + len(held) >= LARGE
        order = ordered({**asked, "new": forms}, large or not program.asked, large)
        return LENGTH.pack(len(order)) + order + given + held

    def timed(self, program, message, clean, fresh):
        """The reply to a message; in `phases` what the call, what was before and what was after it took, if told apart.

        `clean`: no process of the candidate's is there but this one, which has not imported its code. What `fresh` has
        ended is part of the call.
        """
        owed = self.meter.cpu - self.paid if clean and fresh else 0.0
        before, after = (0.0, 0.0), (0.0, 0.0)
        since = self.paid + owed, self.began
        kind, content = self.asked_of(program, message)
        if first := kind == READY:
            before, since = self.since(since), self.mark()
            kind, content = self.asked_of(program, GO_ON)
        cpu, wall = self.since(since)
        if last := kind == FINISHED:
            since = self.mark()
            kind, content = self.asked_of(program, GO_ON)
            after = self.since(since)
        if first or last:
            call = owed + cpu if owed + cpu >= LEAST else min(wall, UNSEEN), wall
            self.phases = [
                *(round(number, 9) for part in (call, before, after) for number in part),
                clean,
                self.counted,
            ]
        return kind, content

    def asked_of(self, program, message):
        """Send a message, and follow the program until it has replied."""
        program.send(message)
        self.follow(program, program.replied)
        if not program.replied():
            raise Broken("crashed", f"{ending(program.status)} before replying {self.doing}")
        return program.take_reply(self.limits["reply"])

    def mark(self):
        """CPU and wall clock now, between two parts of a call."""
        return self.meter.cpu, time.monotonic()

    def since(self, mark):
        """CPU and wall clock from a mark to the last reply.

        CPU is read after the reply. Of what is more than one process could have used by then, some may have been used
        since, by another: wall clock goes on for as much, at most until it was read. Where no group counts, CPU may
        come in ticks, of which one more says nothing.
        """
        cpu, wall, until_read = self.meter.cpu - mark[0], self.followed - mark[1], self.meter.taken - mark[1]
        return max(0.0, cpu), max(0.0, wall, min(cpu if self.counted else cpu - UNSEEN, until_read))

    def run(self, header, body):
        """Run a command in the work folder; the answer's body is its output and the files asked for."""
        self.runs += 1
        self.doing = f"in run {self.runs}"
        self.captures = stdout, stderr = self.new_captures()
        code, files, failure = None, {}, {}
        try:
            code = self.code_of_run(header, body)
            with self.place.acting():
                files = read_files(self.folder, header["out"], self.limits["reply"])
        except Broken as broken:
            code, failure = None, self.fail(broken)
        parts = stdout.news(), stderr.news(), *files.values()
        answer = {"code": code, "out": list(files), "sizes": list(map(len, parts))}
        return {**failure, **answer, **self.charged()}, b"".join(parts)

    def code_of_run(self, header, body):
        """The exit code, negative for a signal, 126 when the run's files cannot be written."""
        self.check_broken()
        try:
            with self.place.acting():
                stdin = write_files(self.folder, header["files"], body)
        except OSError as error:
            self.look()
            self.captures[1].add(f"cannot write the files of the run: {error}\n".encode(errors="replace"))
            return 126
        self.stirred = True
        process = self.start(command(header["argv"], self.seed), *self.captures)
        process.send(stdin, last=True)
        self.follow(process, lambda: False)
        return os.waitstatus_to_exitcode(process.status)

    def start_server(self, header, body):
        """Start a command and leave it running; the answer's body is empty."""
        self.doing = "in the server"
        failure = {}
        try:
            self.check_broken()
            self.stirred = True
            self.start(command(header["argv"], self.seed), *self.captures).send(b"", last=True)
        except Broken as broken:
            failure = self.fail(broken)
        return self.plain_answer(failure)

    def connect(self, header, body):
        """Open a tunnel to a port of the loopback interface; the answer's `tunnel` is its number, or null."""
        failure, tunnel = {}, None
        try:
            self.check_broken()
            tunnel = self.tunnels.connect(header["port"])
            self.look()
        except Broken as broken:
            failure = self.fail(broken)
        return self.plain_answer(failure, tunnel=tunnel, alive=self.alive)

    def exchange(self, header, body):
        """Pass bytes on through a tunnel, and bring back what has come, waiting for it as long as the host says."""
        failure, news, ended = {}, b"", True
        try:
            self.check_broken()
            until, tunnel = self.began + header["wait"], header["tunnel"]
            self.tunnels.send(tunnel, body, header["last"])
            while not (news := self.tunnels.receive(tunnel)) and not self.tunnels.ended(tunnel):
                if time.monotonic() >= until:
                    break
                self.turn(min(until, self.meter.due(TICK)))
                self.look(self.meter.due(TICK))
            if ended := self.tunnels.ended(tunnel):
                self.tunnels.forget(tunnel)
        except Broken as broken:
            failure = self.fail(broken)
        return self.plain_answer(failure, news, ended=ended, full=self.tunnels.full(header["tunnel"]))

    def explain(self, header, body):
        """Say which limit a server broke that does not do its part; nothing where it broke none.

        Its connections end before it does, and memory that it was refused it may have given back by now: so this waits
        for its end as long as the host says, and looks back at the most that it ever had.
        """
        failure = {}
        try:
            self.check_broken()
            until = self.began + header["wait"]
            while self.processes and time.monotonic() < until:
                self.turn(min(until, self.meter.due(TICK)))
                self.look(self.meter.due(TICK))
            self.meter.look_back()
            self.look()
        except Broken as broken:
            failure = self.fail(broken)
        return self.plain_answer(failure)

    def pack(self, header, body):
        """Bring back the whole folder as it is, also after a limit was broken."""
        try:
            self.kill_all()
            with self.place.acting():
                work, lenient = f"{self.place.box}/work", header["lenient"]
                entries, contents = pack(work, header["most"], header["without"], lenient)
        except Broken as broken:
            return self.plain_answer(self.fail(broken))
        listed = json.dumps(entries).encode()
        return {**self.usage(), "listed": True, "sizes": [len(listed), len(contents)]}, listed + contents

    def plain_answer(self, failure, body=b"", **fields):
        """An answer with one part."""
        return {**failure, **self.usage(), "sizes": [len(body)], **fields}, body

    def check_broken(self):
        """Tell of a limit that was broken since the last request, or of files that could not be unpacked."""
        if broken := self.unfit or self.broken:
            raise broken

    def fail(self, broken):
        """End all processes of the session, and say why."""
        if broken.failure == "timeout":
            self.meter.sample()
            self.waits.look(self.meter.cpu)
        self.kill_all()
        return {"failure": broken.failure, "detail": broken.detail[:LONGEST_DETAIL]}

    def usage(self):
        """What the request used, with a clean slate for the next one."""
        cpu, memory, waited = self.meter.cpu - self.paid, self.peak, self.waits.seconds - self.told_wait
        self.paid, self.told_wait = self.meter.cpu, self.waits.seconds
        self.peak = 0
        return {"cpu": cpu, "memory": memory, "wall": time.monotonic() - self.began, "waited": waited}

    def charged(self):
        """The same of something that ran: never no CPU, as that would be faster than anything can be."""
        usage = self.usage()
        return usage if usage["cpu"] >= LEAST else {**usage, "cpu": min(usage["wall"], UNSEEN)}

    def start_answering(self):
        """Fork the process that answers calls."""
        return self.start(lambda into, reply: answer_calls(into, reply, self.seed), *self.captures)


def ordered(asked, wait, large):
    """What the program is told of a call."""
    return json.dumps({**asked, "wait": wait, "large": large}).encode()


@functools.lru_cache(maxsize=8)
def order_of(target, wait, large):
    """The same of a call whose arguments are all JSON."""
    return ordered({"target": target, "given": [], "held": [], "new": []}, wait, large)

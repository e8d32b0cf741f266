"""What the supervisor says, in words."""

import os
import signal

from jail_bytes import Broken
from jail_calls import NO_DISK, NO_JSON, NO_MEMORY
from jail_program import headroom

INODES = 65_536  # files and folders allowed at least, whatever the disk limit


def excess(meter, cpu, limits, doing):
    """What of a session is above its limits, None when nothing is; `cpu` is what the request used of it."""
    if meter.disk > limits["disk"] or meter.inodes > max(INODES, limits["disk"] >> 12):
        return Broken("disk-limit", f"wrote {megabytes(meter.disk)} in {meter.inodes} files {doing}")
    if meter.killed:
        return Broken("out-of-memory", f"was killed by the kernel for lack of memory {doing}")
    if meter.memory > limits["memory"]:
        return Broken("out-of-memory", f"used {megabytes(meter.memory)} of memory {doing}")
    if meter.highest > limits["memory"] + headroom(limits["memory"]) // 4:
        return Broken("out-of-memory", f"had {megabytes(meter.highest)} of memory before it failed {doing}")
    if meter.tasks > limits["processes"]:
        return Broken("process-limit", f"had {meter.tasks} processes and threads {doing}")
    if cpu > limits["cpu"]:
        return Broken("timeout", f"killed after {limits['cpu']:g} s of CPU {doing}")
    return None


def refusal(kind, story, limits, doing):
    """What a reply without a value stands for."""
    if kind == NO_JSON:
        return Broken("invalid", f"returned what JSON cannot say {doing}: {story}")
    if kind == NO_MEMORY:
        return Broken("out-of-memory", f"asked for more than {megabytes(limits['memory'])} of memory {doing}")
    if kind == NO_DISK:
        return Broken("disk-limit", f"wrote more than {megabytes(limits['disk'])} {doing}")
    return Broken("crashed", f"raised {story}")


def megabytes(size):
    """A size for people."""
    return f"{size / (1 << 20):.0f} MiB"


def ending(status):
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with code {code}"
    names = {int(number): number.name for number in signal.Signals}  # not of all real-time signals
    return f"was killed by {names.get(-code, f'signal {-code}')}"

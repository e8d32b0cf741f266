"""What the supervisor says, in words."""

import os
import signal

from jail_bytes import Broken
from jail_program import NO_DISK, NO_JSON, NO_MEMORY


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

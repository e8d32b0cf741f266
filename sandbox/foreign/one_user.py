"""Lets Python programs become other users where a sandbox has but one: they go on as they are.

Verifiers that expect to be root start what they do not trust as `nobody`. Here all runs beside the candidate anyway.
"""

import _posixsubprocess
import os

NAMES = "chown fchown lchown initgroups setegid seteuid setgid setgroups setregid setresgid setresuid setreuid setuid"
USER = slice(17, 20)
"""Where `fork_exec` of CPython 3.11 and later is told the group, the groups and the user of a program."""


def stay(*_, **__):
    """Do nothing."""


def as_we_are(*given, fork=_posixsubprocess.fork_exec):
    """Start a program as whoever we are."""
    words = list(given)
    words[USER] = None, None, None
    return fork(*words)


for each in NAMES.split():
    setattr(os, each, stay)
_posixsubprocess.fork_exec = as_we_are

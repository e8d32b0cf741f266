"""The reasoning that some endpoints leave in the text of a reply, in front of the answer."""

from __future__ import annotations

import re

NO_ANSWER = "[The reply was nothing but thoughts: their end is missing.]"
"""The text of a reply whose thoughts never end."""

_TAGS = "think|thinking|thoughts?|reasoning"
_OPENING = re.compile(
    rf"^[ \t]*(?:<({_TAGS})>|\[THINK\]|◁think▷|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary))",
    re.MULTILINE | re.IGNORECASE,
)
_END = re.compile(rf"</(?:{_TAGS})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>", re.IGNORECASE)
"""Tags of Qwen, DeepSeek and others, marks of Mistral and Kimi, channels of gpt-oss (harmony)."""

_EDGE = re.compile(r"^(?:(<{5,})|={5,}|>{5,}|diff --git |--- |\+\+\+ )", re.MULTILINE)
"""A line at which a block of an edit begins, or one within it or at its end."""


def without_thoughts(reply: str) -> str:
    """Return a reply as it stands behind the last end of thoughts; NO_ANSWER where thoughts begin and never end.

    An end within a block of an edit is a part of a file. Where no thoughts begin, as the endpoint did that
    for the model, only an end at the beginning of a line counts.
    """
    opening, edge = _OPENING.search(reply), _EDGE.search(reply)
    opens = opening is not None and (edge is None or opening.start() < edge.start())
    for end in reversed(list(_END.finditer(reply))):
        rest = reply[end.end() :]
        behind = _EDGE.search(rest)
        is_whole = behind is None or behind[1] is not None or not behind[0].startswith(("=", ">"))
        if is_whole and (opens or reply[: end.start()].rpartition("\n")[2].strip() == ""):
            return rest.lstrip("\r\n").removesuffix("<|end|>").removesuffix("<|return|>")
    return NO_ANSWER if opens else reply

"""The reasoning that some endpoints leave in the text of a reply, before the answer."""

from __future__ import annotations

import re

NO_ANSWER = "[The reply was nothing but thoughts: their end is missing.]"
"""The text of a reply whose thoughts never end."""

_TAGS = "(?:seed:)?think|thinking|thoughts?|reasoning"
_BEGIN = rf"<(?:{_TAGS})>|\[THINK\]|◁think▷|<\|(?:START_THINKING|begin_of_thought)\|>"
_FINAL = r"<\|channel\|>final[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|>|(?-i:assistantfinal)"
_END = rf"</(?:{_TAGS})>|\[/THINK\]|◁/think▷|<\|(?:END_THINKING|end_of_thought)\|>"
"""Tags of Qwen, DeepSeek, Seed and others, marks of Mistral, Kimi and Cohere; the channels of gpt-oss (harmony),
which some endpoints print without their brackets."""

_MARK = re.compile(
    r"(?P<hunk>^@@ .*\n(?:[ +\\-].*(?:\n|\Z)|\n(?=[ +\\-]))*)"
    r"|^(?P<block><{5,}) ?(?-i:[A-Z]{3})"
    r"|^(?P<close>>{5,}) ?(?-i:[A-Z]+)[ \t]*$"
    rf"|(?P<begin>^[ \t]*(?:{_BEGIN})|(?:{_BEGIN})[ \t]*$|<\|channel\|>(?:analysis|commentary)"
    r"|(?-i:\Aanalysis(?=[A-Z])))"
    rf"|(?P<end>^[ \t]*(?:{_END})|(?:{_END})(?=[ \t]*$|(?-i:[A-Z<{{]))|{_FINAL})"
    rf"|(?P<within>(?<!`)(?:{_END})(?!`))",
    re.MULTILINE | re.IGNORECASE,
)
"""Beginnings and ends of thoughts (`within` a line, an end counts only after a beginning), and of blocks of edits."""


def without_thoughts(reply: str) -> str:
    """Return the text after the last end of thoughts; NO_ANSWER if thoughts begin and do not end.

    Marks within a block of an edit belong to a file. A block that another one interrupts is a draft in the thoughts.
    """
    marks, in_block, length = list[re.Match[str]](), list[re.Match[str]](), 0
    for mark in _MARK.finditer(reply):
        if block := mark["block"]:
            if length in (0, len(block)):
                marks += in_block
                in_block, length = [], len(block)
        elif close := mark["close"]:
            if length == len(close):
                in_block, length = [], 0
        elif mark["hunk"] is None:
            (in_block if length else marks).append(mark)
    start, began, ended = 0, False, True
    for mark in (*marks, *in_block):
        if mark["begin"] is not None:
            began, ended = True, False
        elif began or mark["within"] is None:
            start, ended = mark.end(), True
    if not ended:
        return NO_ANSWER
    return reply[start:].lstrip("\r\n").removesuffix("<|end|>").removesuffix("<|return|>") if start else reply

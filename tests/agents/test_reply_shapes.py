"""Shapes of replies that models really write: each means exactly one edit, or is asked back with a reason."""

from __future__ import annotations

import pytest

from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import RunCommand, read_calls
from evogit.agents.editing.draft import Draft
from evogit.agents.editing.reply import parse, reason_of
from evogit.llm.thoughts import NO_ANSWER

CODE = b"""import math


class Ring:
    def area(self, outer):
        inner = self.inner
        return math.pi * (outer**2 - inner**2)

    def edge(self):
        return 2 * math.pi * self.inner
"""
SPACED = b"one  \ntwo\n\t\nthree\n"
TABBED = b"func f() {\n\tif x {\n\t\treturn 1\n\t}\n\treturn 2\n}\n"
FILES = {"src/ring.py": CODE, "spaced.md": SPACED, "tabbed.go": TABBED, "lone.py": b"x = 1\n"}

OLD, NEW = "        return 2 * math.pi * self.inner", "        return math.tau * self.inner"
EDGE = {"src/ring.py": CODE.replace(OLD.encode(), NEW.encode())}
LONE = {"lone.py": b"x = 2\n"}


def changed(reply: str) -> dict[str, bytes | None]:
    draft = Draft(FILES, lambda _: "")
    draft.take(parse(reply).blocks)
    return draft.changes


def block(head: str, old: str, new: str, tail: str = ">>>>>>> REPLACE\n") -> str:
    return f"{head}\n{old}\n=======\n{new}\n{tail}"


def edge(head: str, tail: str = ">>>>>>> REPLACE\n") -> str:
    return block(head, OLD, NEW, tail)


PATHS = {
    "behind the marker": edge("<<<<<<< SEARCH src/ring.py"),
    "dot slash": edge("<<<<<<< SEARCH ./src/ring.py"),
    "colon": edge("<<<<<<< SEARCH: src/ring.py"),
    "label": edge("<<<<<<< SEARCH file: `src/ring.py`"),
    "parentheses": edge("<<<<<<< SEARCH (src/ring.py)"),
    "quotes": edge('<<<<<<< SEARCH "src/ring.py"'),
    "above": edge("src/ring.py\n<<<<<<< SEARCH"),
    "above the fence": edge("src/ring.py\n```python\n<<<<<<< SEARCH", ">>>>>>> REPLACE\n```\n"),
    "bold above": edge("**src/ring.py**\n\n<<<<<<< SEARCH"),
    "heading with number": edge("### 1. `src/ring.py`\n<<<<<<< SEARCH"),
    "comment in the fence": edge("```python\n# src/ring.py\n<<<<<<< SEARCH", ">>>>>>> REPLACE\n```\n"),
    "comment of C": edge("// src/ring.py\n<<<<<<< SEARCH"),
    "comment of C, closed": edge("/* src/ring.py */\n<<<<<<< SEARCH"),
    "comment of HTML": edge("<!-- src/ring.py -->\n<<<<<<< SEARCH"),
    "fence with path": edge("```python:src/ring.py\n<<<<<<< SEARCH", ">>>>>>> REPLACE\n```"),
    "fence with title": edge('```python title="src/ring.py"\n<<<<<<< SEARCH', ">>>>>>> REPLACE\n```"),
    "first line inside": edge("<<<<<<< SEARCH\nsrc/ring.py"),
    "comment inside": edge("<<<<<<< SEARCH\n# src/ring.py"),
    "block before": block("<<<<<<< SEARCH src/ring.py", "import math", "import math") + "\n" + edge("<<<<<<< SEARCH"),
}

MARKERS = {
    "six": edge("<<<<<< SEARCH src/ring.py", ">>>>>> REPLACE").replace("=======", "======"),
    "spaces behind them": edge("<<<<<<< SEARCH src/ring.py  ").replace("=======", "=======  "),
    "CRLF": edge("<<<<<<< SEARCH src/ring.py").replace("\n", "\r\n"),
    "no last one": edge("<<<<<<< SEARCH src/ring.py", ""),
    "no last one in a fence": edge("```\n<<<<<<< SEARCH src/ring.py", "```\n\n"),
    "words behind": edge("<<<<<<< SEARCH src/ring.py") + "\nThis saves a multiplication.\n",
}

CONTENT = {
    "spaces at the end": block("<<<<<<< SEARCH src/ring.py", OLD + "  ", NEW),
    "no indentation": block("<<<<<<< SEARCH src/ring.py", OLD.strip(), NEW.strip()),
    "too much indentation": block("<<<<<<< SEARCH src/ring.py", f"  {OLD}", f"  {NEW}"),
    "first line stripped": block("<<<<<<< SEARCH src/ring.py", f"def edge(self):\n{OLD}", f"def edge(self):\n{NEW}"),
    "dedented": block("<<<<<<< SEARCH src/ring.py", f"def edge(self):\n{OLD[4:]}", f"def edge(self):\n{NEW[4:]}"),
    "blank lines around": block("<<<<<<< SEARCH src/ring.py", f"\n{OLD}\n\n\n", f"\n{NEW}\n"),
    "fences inside": block("<<<<<<< SEARCH src/ring.py", f"```python\n{OLD}\n```", f"```python\n{NEW}\n```"),
    "fence around both": block("<<<<<<< SEARCH src/ring.py", f"```python\n{OLD}", f"{NEW}\n```"),
}

HUNK = f"@@ -8,3 +8,3 @@\n \n     def edge(self):\n-{OLD}\n+{NEW}\n"
PATCHES = {
    "unified": f"--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}",
    "unified, fenced": f"So:\n```diff\n--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}```\nThat is it.\n",
    "of Git": f"diff --git a/src/ring.py b/src/ring.py\nindex 1..3\n--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}",
    "plain paths and dates": f"--- src/ring.py\t2026-01-01\n+++ src/ring.py\t2026-01-02\n{HUNK}",
    "blank context without its space": f"--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}".replace("\n \n", "\n\n"),
    "wrong numbers": f"--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}".replace("-8,3 +8,3", "-99,7 +1,4"),
    "no numbers": f"--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}".replace("-8,3 +8,3 @@", "... @@"),
    "prose behind": f"--- a/src/ring.py\n+++ b/src/ring.py\n{HUNK}\nThis saves a multiplication.\n",
    "starred": f"*** Begin Patch\n*** Update File: src/ring.py\n@@ def edge(self):\n-{OLD}\n+{NEW}\n*** End Patch\n",
}


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(reply, id=f"{kind}: {name}")
        for kind, shapes in {"path": PATHS, "markers": MARKERS, "content": CONTENT, "patch": PATCHES}.items()
        for name, reply in shapes.items()
    ],
)
def test_a_shape_that_can_mean_one_thing_is_understood(reply: str) -> None:
    assert changed(reply) == EDGE


@pytest.mark.parametrize(
    ("reply", "changes"),
    [
        ("<<<<<<< WRITE lone.py\nx = 2", LONE),
        ("<<<<<<< WRITE ./lone.py\n```python\nx = 2\n```\n>>>>>>> END", LONE),
        ("```\n<<<<<<< WRITE lone.py\nx = 2\n```", LONE),
        ("<<<<<<< RENAME ./lone.py => `two.py`", {"lone.py": None, "two.py": b"x = 1\n"}),
        ("--- a/lone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n", {"lone.py": None}),
        ("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,3 @@\n+a\n+\n+b\n", {"new.py": b"a\n\nb\n"}),
        ("--- a/lone.py\n+++ b/lone.py\n@@ -1 +1 @@\n-x = 1\n\\ No newline at end of file\n+x = 2\n", LONE),
        ("diff --git a/lone.py b/l.py\nrename from lone.py\nrename to l.py\n", {"lone.py": None, "l.py": b"x = 1\n"}),
        (
            "*** Begin Patch\n*** Add File: new.py\n+a\n*** Update File: lone.py\n*** Move to: l.py\n@@\n-x = 1\n"
            "+x = 2\n*** Delete File: tabbed.go\n*** End Patch\n",
            {"new.py": b"a\n", "lone.py": None, "l.py": b"x = 2\n", "tabbed.go": None},
        ),
        (
            "--- a/lone.py\n+++ b/lone.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n\n<<<<<<< DELETE tabbed.go\n",
            {**LONE, "tabbed.go": None},
        ),
        (
            block(
                "<<<<<<< SEARCH tabbed.go", "    if x {\n        return 1", "    if y {\n        for {\n            z"
            ),
            {"tabbed.go": TABBED.replace(b"\tif x {\n\t\treturn 1", b"\tif y {\n\t\tfor {\n\t\t\tz")},
        ),
        (
            block("<<<<<<< SEARCH spaced.md", "one\ntwo\n\nthree", "one\n2\n\nthree"),
            {"spaced.md": SPACED.replace(b"two", b"2")},
        ),
        (
            block("<<<<<<< SEARCH lone.py", "x = 1", "def f() -> int:\n    ..."),
            {"lone.py": b"def f() -> int:\n    ...\n"},
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_a_shape_changes(reply: str, changes: dict[str, bytes | None]) -> None:
    assert changed(reply) == changes


RING = "<<<<<<< SEARCH src/ring.py"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        # it may be more than one place, or no certain content
        (block(RING, "return 2 * math.pi\n", "x"), "does not match"),
        (block("<<<<<<< SEARCH tabbed.go", "return 1", "y {\n\t\tz\n\t\t}"), "does not match"),
        (block("<<<<<<< SEARCH tabbed.go", "  if x {\n    return 1", "  if x {\n   z()"), "does not match"),
        (block(RING, f"def edge(self):\n{OLD.strip()}", "x"), "does not match"),
        (block(RING, OLD.replace("2 *", "2*"), NEW), "does not match"),
        (f"{RING}\n=======\n{NEW}\n>>>>>>> REPLACE", "is empty"),
        # something was left out
        (block(RING, OLD, f"{NEW}\n        # ... rest of the method unchanged ..."), "leave out code"),
        (block(RING, OLD, "        # ... existing code ..."), "leave out code"),
        ("<<<<<<< WRITE lone.py\nimport math\n...\nx = 2\n>>>>>>> END", "leave out code"),
        ("<<<<<<< WRITE tabbed.go\nfunc f() {\n\t// ...\n}\n>>>>>>> END", "leave out code"),
        ("<<<<<<< WRITE tabbed.go\n// rest of the code remains the same\n>>>>>>> END", "leave out code"),
        (block(RING, f"class Ring:\n    ...\n{OLD}", NEW), "does not match"),
        # an end that may not be the end
        (edge(RING, "\nThis saves a multiplication."), "is not closed"),
        (edge(f"```\n{RING}", "```\nThis saves it."), "is not closed"),
        (edge(f"```\n{RING}", ""), "is not closed"),
        (edge(RING, ">>>>> REPLACE"), "is not closed"),
        ("<<<<<<< SEARCH src/ring.py\nimport math", "is not closed"),
        # no file, or several
        ("```python\n# src/ring.py\nimport math\n```", "holds no edit block"),
        (NO_ANSWER, "nothing but thoughts"),
        (block("Now the edge:\n<<<<<<< SEARCH", OLD, NEW), "names no file"),
        (edge(RING) + "\nNow the other one:\n" + block("<<<<<<< SEARCH", "import math", "x"), "names no file"),
        (edge(RING) + "<<<<<<< WRITE\nx\n>>>>>>> END", "names no file"),
        (edge("<<<<<<< SEARCH ring.py"), "there is no file 'ring.py'"),
        # patches that are none
        (HUNK, "begins a hunk of no file"),
        ("--- a/lone.py\n+++ b/lone.py\n", "holds no line"),
        ("--- a/lone.py\n+++ b/lone.py\n@@ -1 +1 @@\n-x = 9\n+x = 2\n", "does not match"),
        ("--- a/lone.py\n+++ b/lone.py\n@@ -1 +1,2 @@\n+x = 2\n", "is empty"),
        ("--- a/lone.py\n+++ b/lone.py\n@@ -1 +1,2 @@\nx = 1\n+x = 2\n", "stands in a patch"),
        ("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+a\n b\n", "lines without `+`"),
        ("--- a/src/ring.py\n+++ b/src/ring.py\n@@ @@\n-        pass\n+        return 1\n", "does not match"),
    ],
    ids=lambda value: repr(value[-50:]),
)
def test_a_shape_that_may_mean_several_things_is_asked_back(reply: str, reason: str) -> None:
    with pytest.raises(EditError) as caught:
        changed(reply)
    assert reason in str(caught.value)


def test_one_line_at_two_depths_is_asked_back_with_the_lines() -> None:
    files = {"a.py": b"if x:\n    y()\nelse:\n        y()\n"}
    draft = Draft(files, lambda _: "")
    with pytest.raises(EditError, match="does not match") as caught:
        draft.take(parse(block("<<<<<<< SEARCH a.py", "y()", "z()")).blocks)
    assert "2      y()" in caught.value.hint


@pytest.mark.parametrize(
    ("reply", "command"),
    [
        ("<<<<<<< RUN python3 - <<'X'\nprint(1)\nX\n", "python3 - <<'X'\nprint(1)\nX"),
        ("<<<<<<< RUN python3 - <<X\nprint(1)\nX\n>>>>>>> END\n", "python3 - <<X\nprint(1)\nX"),
        ("<<<<<<< RUN cat <<-A <<'B'\n1\n\tA\n2\nB\nIt prints.", "cat <<-A <<'B'\n1\n\tA\n2\nB"),
        ("<<<<<<< RUN cd src\nls\n>>>>>>> END\n", "cd src\nls"),
        ("<<<<<<< RUN\n```bash\nls\n```\n>>>>>>> END\n", "ls"),
        ("<<<<<<< RUN cat <<< here\n", "cat <<< here"),
        ("<<<<<<< RUN python3 -c 'print(1 << 2)'\n", "python3 -c 'print(1 << 2)'"),
    ],
)
def test_a_command_has_the_lines_that_belong_to_it(reply: str, command: str) -> None:
    assert read_calls(reply).calls == (RunCommand(command),)


def test_a_command_whose_input_does_not_end_is_asked_back() -> None:
    with pytest.raises(EditError, match="'X' ends the input"):
        read_calls("<<<<<<< RUN python3 - <<'X'\nprint(1)\n")


def test_a_coder_may_write_patches_between_its_requests() -> None:
    said = "<<<<<<< READ ./lone.py\n--- a/lone.py\n+++ b/lone.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n<<<<<<< FINISH two\n"
    assert [type(call).__name__ for call in read_calls(said).calls] == ["ReadLines", "Edits", "Finish"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Slow.\nSo:\n\nTITLE: a\n\n<<<<<<< SEARCH a.py\n", "Slow.\nSo:"),
        ("TITLE: a\n\nIt is slow.\n\n**src/a.py**\n```python\n<<<<<<< SEARCH\n", "It is slow."),
        ("It is slow.\r\n--- a/x.py\n+++ b/x.py\n", "It is slow."),
        ("PLAN: cache it\n<<<<<<< RUN ls\n", "cache it"),
        ("<<<<<<< SEARCH a.py\nx\n=======\ny\n>>>>>>> REPLACE\nDone.\n", ""),
    ],
)
def test_what_is_said_before_the_first_block_is_the_reason(reply: str, reason: str) -> None:
    assert reason_of(reply) == reason

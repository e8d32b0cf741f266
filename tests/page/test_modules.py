"""The browser's modules as one script, which the exported file is made of."""

from __future__ import annotations

import re
from collections import Counter

from evogit.content import content
from evogit.page.assets import script

NAMED = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)


def test_no_two_modules_have_the_same_name_at_their_top() -> None:
    """In one script they would be one: the file that `export run.html` writes would not begin."""
    modules = [file.read_text(encoding="utf-8") for file in content("graphs").glob("*.js")]
    named = Counter(name for text in modules for name in NAMED.findall(text))
    assert [name for name, times in named.items() if times > 1] == []


def test_nothing_of_modules_is_left_in_the_script() -> None:
    assert re.findall(r"^(?:import|export)\b.*", script("main.js"), re.MULTILINE) == []


def test_no_module_makes_elements_of_text() -> None:
    """What a candidate wrote is only ever set as text."""
    makes = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|createContextualFragment"
    )
    for file in content("graphs").glob("*.js"):
        assert not re.findall(makes, file.read_text(encoding="utf-8")), file.name

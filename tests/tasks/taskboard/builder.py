"""A scripted agent that builds what the stage asks for: the finished board without what later stages ask for."""

from __future__ import annotations

import random
import re
from pathlib import Path

from evogit import Agent, Brief, NoUsableChangeError, Proposal

FINISHED = Path(__file__).parent
LATER = {
    2: [('parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)', "{}")],
    3: [
        ("    fields = fields_of(sent)", "    fields = json.loads(sent)"),
        ('"PATCH": ', '"LATER": '),
        ('"DELETE": ', '"LAST": '),
    ],
    4: [('if path == "/":', 'if path == "//":'), ('if path == "/tasks":', 'if path == "//tasks":')],
}
"""Stage -> what of the finished application is not there before it."""


class Builder(Agent):
    """Does one stage after the other, and nothing that nobody asked for."""

    kind = "builder"
    pauses = False

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """All files as they are at the end of this stage."""
        told = re.search(r"stage (\d) of 4", brief.goal)
        stage = int(told[1]) if told else 0
        files = {name: (FINISHED / name).read_text() for name in ("app.py", "store.py", "pages.py")}
        for number, changes in LATER.items():
            for old, new in changes if number > stage else ():
                assert old in files["app.py"]
                files["app.py"] = files["app.py"].replace(old, new)
        changed = {name: text.encode() for name, text in files.items() if brief.files.get(name) != text.encode()}
        if not changed:
            raise NoUsableChangeError("this stage is built")
        return Proposal(changes=changed, title=f"build stage {stage}")

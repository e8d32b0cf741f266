from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Evaluate = Callable[..., Any]


@pytest.fixture(scope="session")
def javascript() -> Evaluate:
    """Runs an expression over the page's own modules and some told values, and gives back what it is worth."""
    quickjs = pytest.importorskip("quickjs")
    from evogit.page.modules import script

    context = quickjs.Context()
    context.set_max_stack_size(16 << 20)
    context.eval(script("run.js", "table.js", "filter.js", "picture.js", "format.js"))

    def evaluate(expression: str, **told: Any) -> Any:
        for name, value in told.items():
            context.set(name, json.dumps(value))
        values = "".join(f"const {name}_ = JSON.parse({name});" for name in told)
        return json.loads(context.eval(f"{{{values} JSON.stringify({expression})}}"))

    return evaluate

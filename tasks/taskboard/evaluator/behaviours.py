"""What the board must do, as questions to a running server.

Each makes tasks of its own, with words that were not there before, and shows what must hold beside what must not: a
server that answers everything alike does nothing right.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from client import Client, path_of, same, task_of

Behaviour = Callable[[Client, Client, str], bool]
"""Asked of a server, of another one on the same files, and with a word that is new."""


def word(rng: random.Random) -> str:
    """Eight letters."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8))


def creates(api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    return made.get("title") == new and same(api.task(made), made)


def answers_201(api: Client, _other: Client, new: str) -> bool:
    answer = api.send("POST", "/api/tasks", {"title": new})
    made = task_of(answer)
    return answer.status == 201 and made.get("title") == new and same(api.task(made), made)


def lists(api: Client, _other: Client, new: str) -> bool:
    before = api.found()
    made = [api.create(f"{new} {i}") for i in range(3)]
    return all(made) and same(api.found(), before + made)


def defaults(api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    full = {"id": made.get("id"), "title": new, "status": "todo", "priority": 3, "due": None}
    return same(made, full) and same(api.task(made), full)


def takes_all(api: Client, _other: Client, new: str) -> bool:
    given = {"title": new, "status": "doing", "priority": 5, "due": "2030-02-28"}
    made = api.create(**given)
    return same(made, {"id": made.get("id"), **given}) and same(api.task(made), made)


def keeps_title(title: str, kept: str, api: Client, _other: Client, new: str) -> bool:
    made = api.create(title.format(new))
    return made.get("title") == kept.format(new) and same(api.task(made), made)


def is_missing(path: str, api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    there, gone = api.get(path_of(made)), api.get(path)
    return bool(made) and there.status == 200 and gone.status == 404 and has_error(gone.json)


def has_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("error"), str) and bool(value["error"].strip())


def refuses(fields: object, api: Client, _other: Client, new: str) -> bool:
    """A task that cannot be is refused and not made; one beside it is."""
    text = json.dumps(fields).replace("NEW", new)
    before = len(api.found(q=new))
    made = api.create(new)
    answer = api.request("POST", "/api/tasks", text.encode())
    return bool(made) and answer.status == 400 and has_error(answer.json) and len(api.found(q=new)) == before + 1


def refuses_text(api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    answer = api.request("POST", "/api/tasks", b'{"title": "' + new.encode())
    return bool(made) and answer.status == 400 and has_error(answer.json)


def changes(fields: dict[str, Any], api: Client, _other: Client, new: str) -> bool:
    fields = {name: value.replace("NEW", new) if isinstance(value, str) else value for name, value in fields.items()}
    made, beside = api.create(new, due="2031-01-31"), api.create(new)
    answer = api.send("PATCH", path_of(made), fields)
    wanted = {**made, **fields}
    now = [answer.json, api.task(made), api.task(beside)]
    return bool(made) and answer.status == 200 and same(now, [wanted, wanted, beside])


def refuses_change(fields: dict[str, Any], api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    answer = api.send("PATCH", path_of(made), fields)
    return bool(made) and answer.status == 400 and has_error(answer.json) and same(api.task(made), made)


def deletes(api: Client, _other: Client, new: str) -> bool:
    made, beside = api.create(new), api.create(new)
    answer = api.request("DELETE", path_of(made))
    gone = api.get(path_of(made)).status == 404 and same(api.found(q=new), [beside])
    return bool(made and beside) and answer.status == 204 and not answer.body and gone


def misses(method: str, api: Client, _other: Client, new: str) -> bool:
    """A change of a task that was deleted, or never was."""
    made = api.create(new)
    worked = api.send("PATCH", path_of(made), {"priority": 1}).status == 200
    answer = api.send(method, "/api/tasks/999999999", {"priority": 1})
    return worked and answer.status == 404 and has_error(answer.json)


def refuses_method(method: str, path: str, api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    answer = api.send(method, path.replace("ID", str(made.get("id"))), {"title": new})
    allowed = {each.strip() for each in answer.headers.get("allow", "").split(",")}
    return bool(made) and answer.status == 405 and "GET" in allowed and method not in allowed


def filters(status: str, api: Client, _other: Client, new: str) -> bool:
    made = [api.create(f"{new} {i}", status=each) for i, each in enumerate(["todo", "doing", "done", status])]
    wanted = [each for each in made if each.get("status") == status]
    return all(made) and same(api.found(status=status, q=new), wanted) and len(api.found(q=new)) == 4


def searches(titles: list[str], text: str, count: int, api: Client, _other: Client, new: str) -> bool:
    """The first `count` of the titles have the text."""
    made = [api.create(title.replace("NEW", new)) for title in titles]
    return all(made) and same(api.found(q=text.replace("NEW", new)), made[:count])


def sorts(by: str, order: list[int], api: Client, _other: Client, new: str) -> bool:
    dues = ["2030-05-01", None, "2029-12-31", "2030-05-01"]
    fields = [{"priority": p, "due": due} for p, due in zip([2, 5, 1, 5], dues, strict=True)]
    made = [api.create(f"{new} {i}", **each) for i, each in enumerate(fields)]
    return all(made) and same(api.found(q=new, sort=by), [made[i] for i in order])


def pages_through(query: dict[str, int], wanted: slice, api: Client, _other: Client, new: str) -> bool:
    made = [api.create(f"{new} {i}") for i in range(5)]
    return all(made) and same(api.found(q=new, **query), made[wanted])


def refuses_query(query: dict[str, str], api: Client, _other: Client, new: str) -> bool:
    made = api.create(new)
    answer = api.get("/api/tasks", **query)
    return same(api.found(q=new), [made]) and answer.status == 400 and has_error(answer.json)


def counts(api: Client, _other: Client, new: str) -> bool:
    before = api.get("/api/stats").json
    made = [api.create(new, status=status) for status in ("doing", "done", "done")]
    after = api.get("/api/stats").json
    kinds = ("todo", "doing", "done")
    if not all(made) or not all(isinstance(each, dict) and set(each) == set(kinds) for each in (before, after)):
        return False
    if any(type(each[kind]) is not int for each in (before, after) for kind in kinds):
        return False
    return [after[kind] - before[kind] for kind in kinds] == [0, 1, 2]


def shows(api: Client, _other: Client, new: str) -> bool:
    before = api.get("/").html
    made = api.create(new)
    return bool(made) and new not in before and new in api.get("/").html


def escapes(api: Client, _other: Client, new: str) -> bool:
    made = api.create(f'<b>{new}</b> & "co"')
    page = api.get("/").html
    return bool(made) and f"&lt;b&gt;{new}&lt;/b&gt; &amp; " in page and f"<b>{new}" not in page


def fills(title: str, api: Client, _other: Client, new: str) -> bool:
    title = title.replace("NEW", new)
    answer = api.fill("/tasks", title=title)
    titles = [each.get("title") for each in api.found(q=new) if isinstance(each, dict)]
    return answer.status == 303 and answer.headers.get("location", "") == "/" and titles == [title]


def refuses_form(api: Client, _other: Client, new: str) -> bool:
    worked = api.fill("/tasks", title=new).status == 303
    before = len(api.found())
    answer = api.fill("/tasks", title="  ")
    return worked and answer.status == 400 and bool(answer.html) and len(api.found()) == before


def has_form(api: Client, _other: Client, new: str) -> bool:
    page = api.get("/").html.lower()
    return 'action="/tasks"' in page and 'method="post"' in page and 'name="title"' in page and "<form" in page


def keeps(api: Client, other: Client, new: str) -> bool:
    made = api.create(new)
    return bool(made) and same(other.task(made), made) and same(other.found(q=new), [made])


def keeps_changes(api: Client, other: Client, new: str) -> bool:
    made, gone = api.create(new), api.create(new)
    api.send("PATCH", path_of(made), {"status": "done"})
    deleted = api.request("DELETE", path_of(gone)).status == 204
    return bool(made and gone) and deleted and same(other.found(q=new), [{**made, "status": "done"}])


# Each is named after the stage that asks for it; those of one stage need none of a later one.
VISIBLE: dict[str, Behaviour] = {
    "1-create": creates,
    "1-created-201": answers_201,
    "1-list": lists,
    "1-defaults": defaults,
    "1-missing-404": partial(is_missing, "/api/tasks/999999999"),
    "2-filter-todo": partial(filters, "todo"),
    "2-search": partial(searches, ["NEW milk", "buy NEW", "other"], "NEW", 2),
    "2-another-server": keeps,
    "3-blank-title-400": partial(refuses, {"title": "  "}),
    "3-not-json-400": refuses_text,
    "3-change-status": partial(changes, {"status": "doing"}),
    "3-delete": deletes,
    "4-page-shows": shows,
    "4-page-escapes": escapes,
    "4-form": partial(fills, "NEW"),
}
HIDDEN: dict[str, Behaviour] = {
    "1-all-fields": takes_all,
    "1-title-trimmed": partial(keeps_title, "  {} \t", "{}"),
    "1-title-of-100": partial(keeps_title, "{}" + "x" * 92, "{}" + "x" * 92),
    "1-title-in-greek": partial(keeps_title, "{} Ωμέγα ✓", "{} Ωμέγα ✓"),
    "1-title-with-quotes": partial(keeps_title, "{}'); DROP TABLE tasks; --", "{}'); DROP TABLE tasks; --"),
    "1-missing-id-of-letters": partial(is_missing, "/api/tasks/abc"),
    "1-missing-path": partial(is_missing, "/api/nothing"),
    "1-missing-page": partial(is_missing, "/api"),
    "2-filter-done": partial(filters, "done"),
    "2-search-any-case": partial(searches, ["NEW Milk", "NEW mILKY", "NEW tea"], "NEW mIlK", 2),
    "2-search-per-cent": partial(searches, ["NEW 5%", "NEW 50", "NEW 5_"], "NEW 5%", 1),
    "2-sort-by-priority": partial(sorts, "priority", [1, 3, 0, 2]),
    "2-sort-by-due": partial(sorts, "due", [2, 0, 3, 1]),
    "2-limit": partial(pages_through, {"limit": 2}, slice(0, 2)),
    "2-offset": partial(pages_through, {"limit": 2, "offset": 3}, slice(3, 5)),
    "2-unknown-sort": partial(refuses_query, {"sort": "colour"}),
    "2-negative-limit": partial(refuses_query, {"limit": "-1"}),
    "2-stats": counts,
    "3-no-title": partial(refuses, {"status": "todo"}),
    "3-title-a-number": partial(refuses, {"title": 5}),
    "3-title-too-long": partial(refuses, {"title": "NEW" + "x" * 100}),
    "3-not-an-object": partial(refuses, ["NEW"]),
    "3-unknown-field": partial(refuses, {"title": "NEW", "colour": "red"}),
    "3-unknown-status": partial(refuses, {"title": "NEW", "status": "later"}),
    "3-priority-0": partial(refuses, {"title": "NEW", "priority": 0}),
    "3-priority-true": partial(refuses, {"title": "NEW", "priority": True}),
    "3-no-such-day": partial(refuses, {"title": "NEW", "due": "2030-02-30"}),
    "3-due-a-number": partial(refuses, {"title": "NEW", "due": 20300228}),
    "3-change-title": partial(changes, {"title": "NEW changed"}),
    "3-change-priority-and-due": partial(changes, {"priority": 1, "due": "2032-02-29"}),
    "3-change-due-to-none": partial(changes, {"due": None}),
    "3-refuse-blank-change": partial(refuses_change, {"title": " ", "priority": 1}),
    "3-refuse-change-of-id": partial(refuses_change, {"id": 1}),
    "3-change-of-missing": partial(misses, "PATCH"),
    "3-delete-of-missing": partial(misses, "DELETE"),
    "3-no-put-of-list": partial(refuses_method, "PUT", "/api/tasks"),
    "3-no-post-to-task": partial(refuses_method, "POST", "/api/tasks/ID"),
    "3-another-server-sees-changes": keeps_changes,
    "4-page-has-form": has_form,
    "4-form-refuses-blank": refuses_form,
}

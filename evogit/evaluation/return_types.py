"""What a candidate returned, checked against the type that the evaluator expects: all of it by pydantic.

Evaluator processes start without pydantic. Plain types, which most evaluators expect, need its core alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, get_args, get_origin

from pydantic_core import SchemaValidator, ValidationError
from pydantic_core.core_schema import CoreConfig

from evogit.sandbox.values import MisfitError, check_hashes

_STRICT = CoreConfig(strict=True, allow_inf_nan=False)
_PLAIN = {float: "float", int: "int", str: "str", bool: "bool"}
_MANY = ("list", "tuple", "dict")
_SETS: dict[str, type[set[Any] | frozenset[Any]]] = {"set": set, "frozenset": frozenset}


def check(returns: Any) -> Callable[[bytes], Any]:
    """Make a strict check of a type, in which True is not 1; a list passes for a tuple. Raises PydanticUserError."""
    plain = plain_schema(returns)
    validator = SchemaValidator(_hasty(plain), _STRICT) if plain else _any(returns)

    def fits(raw: bytes) -> Any:
        try:
            return validator.validate_json(raw, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "".join(f"[{part!r}]" for part in first["loc"])
            got = f"{first['input']!r:.80}"
            raise MisfitError(f"value{place}: {first['msg']}, got {got}") from None

    return fits


def plain_schema(returns: Any) -> Any:
    """What pydantic makes of numbers, texts, truth values, and lists and tuples of them; None for all else."""
    for plain, name in _PLAIN.items():
        if returns is plain:
            return {"type": name}
    kind, parts = get_origin(returns), get_args(returns)
    endless = kind is tuple and parts[1:] == (...,)
    items = [plain_schema(part) for part in (parts[:1] if endless else parts)]
    if kind not in (list, tuple) or not items or not all(items):
        return None
    if kind is list:
        return {"type": "list", "items_schema": items[0]}
    return {"type": "tuple", "items_schema": items, **({"variadic_item_index": 0} if endless else {})}


def _any(returns: Any) -> SchemaValidator:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        strict = ConfigDict(strict=True, allow_inf_nan=False)
        return SchemaValidator(_hasty(TypeAdapter(returns, config=strict).core_schema), _STRICT)
    except PydanticUserError:  # a pydantic model or a dataclass brings its own settings
        return SchemaValidator(_hasty(TypeAdapter(returns).core_schema))


def _hasty(schema: Any) -> Any:
    """A pydantic schema whose containers stop at their first mistake: a million of them would take gigabytes."""
    if isinstance(schema, list):
        return [_hasty(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _hasty(part) for name, part in schema.items()}
    if parts.get("type") in _SETS:
        return _set_of_a_list(parts)
    return {**parts, "fail_fast": True} if parts.get("type") in _MANY else parts


def _set_of_a_list(schema: dict[str, Any]) -> dict[str, Any]:
    """A pydantic schema that reads a list before it makes a set of it, which could take hours."""
    kind = _SETS[schema["type"]]

    def build(items: list[Any]) -> Collection[Any]:
        check_hashes(items)
        return kind(items)

    items = {"type": "list", "fail_fast": True, "items_schema": schema.get("items_schema", {"type": "any"})}
    sizes = {name: schema[name] for name in ("min_length", "max_length") if name in schema}
    read = {"type": "function-after", "function": {"type": "no-info", "function": build}, "schema": items}
    about: dict[str, Any] = {name: schema[name] for name in ("ref", "serialization") if name in schema}
    return {"type": "chain", "steps": [read, {"type": schema["type"], **sizes}], **about}

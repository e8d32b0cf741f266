"""Packages whose names are imported from their modules on first use, and classes found by the folder they lie in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

T = TypeVar("T")


def lazy_exports(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` maps its modules to the names that they export.

    A name that is also the name of a module cannot be exported: a package has its modules as attributes.
    """
    modules = {name: f"{package}.{home}" for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return load


def declared(package: str, base: type[T]) -> list[type[T]]:
    """Return the classes below `base` that give a `name` themselves, of all modules of a package, by module."""
    modules = [import_module(f"{package}.{found.name}") for found in iter_modules(import_module(package).__path__)]
    values = [(module, value) for module in modules for value in vars(module).values() if isinstance(value, type)]
    return [
        value
        for module, value in values
        if issubclass(value, base) and value.__module__ == module.__name__ and "name" in vars(value)
    ]

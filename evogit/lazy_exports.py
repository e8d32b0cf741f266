"""Packages whose names are imported from their modules on first use, and classes found by the folder they lie in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
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


def _modules(package: str) -> list[ModuleType]:
    return [import_module(f"{package}.{entry.name}") for entry in iter_modules(import_module(package).__path__)]


def declared(package: str, base: type[T]) -> list[type[T]]:
    """Return the classes below `base` that give a `name` themselves, of all modules of a package, by module."""
    values = [(module, value) for module in _modules(package) for value in vars(module).values()]
    return [
        value
        for module, value in values
        if isinstance(value, type) and issubclass(value, base)
        if value.__module__ == module.__name__ and "name" in vars(value)
    ]


def gathered(package: str, name: str) -> list[Any]:
    """Return the items of the tuples of this name, of all modules of a package that have one, by module."""
    return [item for module in _modules(package) for item in vars(module).get(name, ())]

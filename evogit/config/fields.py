"""Types of values in settings and tasks for pydantic, apart since evaluator processes read tasks without it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, StringConstraints

from evogit.config.values import WORD, is_safe_path, seconds, size


def _glob(value: str) -> str:
    if not is_safe_path(value):
        raise ValueError(
            f'expected a relative path or glob such as "src/**", without "..", ".git" or "\\", got {value!r}'
        )
    return value


def _place(value: str) -> str:
    if not is_safe_path(value):
        raise ValueError(f'expected a relative path such as ".config/name.toml", without ".." or ".git", got {value!r}')
    return value


def _package(value: str) -> str:
    if value.startswith("apt:") and not re.fullmatch(r"apt: *[a-z0-9][a-z0-9+.-]+([:=][\w+.:~-]+)? *", value):
        raise ValueError(f'expected the name of a Debian package, such as "apt:gcc", got {value!r}')
    return value


Duration = Annotated[float, BeforeValidator(seconds)]
Size = Annotated[int, BeforeValidator(size)]
Glob = Annotated[str, BeforeValidator(_glob)]
Place = Annotated[str, AfterValidator(_place)]
Package = Annotated[str, AfterValidator(_package)]
Module = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
Word = Annotated[str, StringConstraints(pattern=WORD, max_length=60)]

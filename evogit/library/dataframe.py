"""Columns as a data frame of whichever library is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from evogit.core import NotFoundError, UsageError

LIBRARIES: Mapping[str, Mapping[str, Any]] = {"pandas": {}, "polars": {"infer_schema_length": None, "strict": False}}
"""Library -> what its `DataFrame` is told beside the columns, which hold numbers, texts and None."""


def dataframe(columns: Mapping[str, Sequence[object]], library: str | None = None) -> Any:
    """A data frame of `library`, or of the first one that is installed.

    Raises:
        NotFoundError: it is not installed, or none is.
        UsageError: it is none that is known.
    """
    if library is not None and library not in LIBRARIES:
        raise UsageError(f"expected {' or '.join(LIBRARIES)}, got {library!r}")
    wanted = [library] if library else list(LIBRARIES)
    for name in wanted:
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        return module.DataFrame(dict(columns), **LIBRARIES[name])
    raise NotFoundError(
        f"a data frame needs {' or '.join(wanted)}, which is not installed here: pip install {wanted[0]}; "
        "without it, `evogit log --format csv` writes the same columns to a file"
    )

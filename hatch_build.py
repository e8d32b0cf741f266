"""Puts the content folders into the wheel as `evogit/_content`; an editable install reads them from the checkout."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ContentHook(BuildHookInterface):  # type: ignore[type-arg]
    """Force-includes `sandbox/`, `tasks/` and `graphs/` in standard builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folders to include; `version` is `editable` for editable installs."""
        if version == "editable":
            return
        for name in ("sandbox", "tasks", "graphs"):
            for file in sorted(Path(self.root, name).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    build_data["force_include"][str(file)] = f"evogit/_content/{file.relative_to(self.root)}"

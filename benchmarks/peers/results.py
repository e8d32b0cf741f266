"""What was measured, as lines of JSON in a file that only ever grows."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from running import Outcome


class Results:
    """All outcomes of a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.runs: dict[str, Outcome] = {}
        self.trials: dict[tuple[str, str], dict[str, Any]] = {}
        """Of a system, by what was tried."""
        for line in file.read_text().splitlines() if file.exists() else []:
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "trial" in line:
            self.trials[line["system"], line["trial"]] = line["found"]
        else:
            self.runs[line["name"]] = Outcome(**line["outcome"])

    @property
    def names(self) -> set[str]:
        """Of all runs."""
        return {*self.runs}

    def add(self, name: str, outcome: Outcome) -> None:
        """A run."""
        self._append({"name": name, "outcome": asdict(outcome)})

    def add_trial(self, system: str, trial: str, **found: object) -> None:
        """What came of something else that was tried on a system."""
        self._append({"system": system, "trial": trial, "found": found})

    def _append(self, line: dict[str, Any]) -> None:
        with self._lock:
            self._take(line)
            with self._file.open("a") as out:
                out.write(json.dumps(line) + "\n")

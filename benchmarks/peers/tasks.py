"""What is searched: five landscapes that nobody tuned anything for, and five examples of the peers, where they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LANDSCAPES = Path(__file__).parent / "landscapes"
EXAMPLES = {
    "circle_packing": ("openevolve", "openevolve/examples/circle_packing", "initial_program.py"),
    "function_minimization": ("openevolve", "openevolve/examples/function_minimization", "initial_program.py"),
    "signal_processing": ("openevolve", "openevolve/examples/signal_processing", "initial_program.py"),
    "sine_approx": ("shinka", "shinka/examples/sine_approx_headless", "initial.py"),
    "text_similarity": ("printed", "skydiscover/examples/text_similarity", "initial_program.py"),
}
"""How the gate scores it, its folder, its program. None takes more than a fifth of a second."""
PACKAGES = ("numpy", "scipy", "matplotlib")
"""What the examples import."""


@dataclass(frozen=True)
class Task:
    """A program, what is wanted of it, and how the gate scores it."""

    name: str
    kind: str
    folder: Path
    program: str
    goal: str

    @property
    def is_example(self) -> bool:
        """Whether a peer brought it."""
        return self.kind != "landscape"


def landscapes() -> list[Task]:
    """Ours."""
    return [
        Task(each.name, "landscape", each, (each / "program.py").read_text(), (each / "goal.md").read_text())
        for each in sorted(LANDSCAPES.iterdir())
        if (each / "score.py").exists()
    ]


def examples(folder: Path | None) -> list[Task]:
    """The peers', below a folder that has their repositories' examples; those that are there."""
    found = []
    for name, (kind, place, program) in EXAMPLES.items():
        if folder and (folder / place / program).exists():
            goal = f"Improve the program, so that its score gets higher ({name.replace('_', ' ')})."
            found.append(Task(name, kind, folder / place, marked((folder / place / program).read_text()), goal))
    return found


def marked(program: str) -> str:
    """The program with EVOLVE-BLOCK lines, which some systems need."""
    if "EVOLVE-BLOCK-START" in program:
        return program
    return f"# EVOLVE-BLOCK-START\n{program}# EVOLVE-BLOCK-END\n"

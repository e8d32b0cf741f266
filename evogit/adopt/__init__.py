"""Tasks of other systems, as they are: recognised, read into EvoGit's words, and written as task folders.

A path goes in, a `Task` or a `ForeignTask` comes out. Start with `finding.py`, which asks one reader per format.
"""

from typing import TYPE_CHECKING

from evogit.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from evogit.adopt.finding import find_task, recognise
    from evogit.adopt.foreign_task import ForeignTask

__getattr__ = lazy_exports(__name__, {"foreign_task": ["ForeignTask"], "finding": ["find_task", "recognise"]})

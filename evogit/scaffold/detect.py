"""What kind of project a tree holds: how it is tested and measured, what agents should change. It runs nothing."""

from __future__ import annotations

from evogit.scaffold.compiled_projects import autotools, cmake, go, make, maven, meson, rust
from evogit.scaffold.javascript_project import javascript
from evogit.scaffold.project import Project, ProjectFiles, editable
from evogit.scaffold.python_project import python_files, python_package

KINDS = (python_package, javascript, rust, go, maven, make, cmake, meson, autotools, python_files)
"""The first one that knows the project describes it."""


def detect(source: ProjectFiles) -> Project:
    """Tell what project this is, from the files that its tools would look for; those with odd names do not count."""
    source = ProjectFiles([path for path in source.paths if path.isprintable()], source.read)
    return next(filter(None, (kind(source) for kind in KINDS)), Project(editable=editable(source.paths)))

"""The secret that a run's inputs are drawn with: made as it begins, and found again by what is journalled of it."""

from __future__ import annotations

from collections.abc import Mapping

from evogit.config.run_settings import Settings
from evogit.evaluation.inputs import Inputs, of_person
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository


def inputs_of(repository: Repository, history: History) -> Inputs:
    """The secret of a run that has begun; none where it began before there were any."""
    began = history.started
    known = began.inputs if began else ""
    secret = repository.input_keys.find(known) if known else b""
    if secret is not None:
        return Inputs(secret)
    return Inputs(
        missing=f"the evaluator of the run {history.run!r} draws inputs (rng) with a secret that this clone does not "
        "have; copy the files in evogit/keys/ of the Git folder in which the run began to "
        f"{repository.input_keys.folder}, or begin a new run (--name NAME)"
    )


def begin_inputs(run: StoredRun, settings: Settings, environ: Mapping[str, str]) -> Inputs:
    """The secret of a run that begins or goes on; that of a deterministic run is the same for the same seed.

    Raises:
        RepositoryError: a new one cannot be kept.
    """
    if run.history.started:
        return inputs_of(run.repository, run.history)
    keys = run.repository.input_keys
    if settings.deterministic:
        return Inputs(keys.keep(of_person(environ, settings.seed).secret))
    return Inputs(keys.make(run.history.run))

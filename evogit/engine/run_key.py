"""The secret that a run's inputs are drawn with: made as it begins, and found again by what is journalled of it."""

from __future__ import annotations

from collections.abc import Mapping

from evogit.config.run_settings import Settings
from evogit.core import RefusedError
from evogit.evaluation.inputs import Inputs, of_person
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.run_keys import commitment, inputs_key


def inputs_of(repository: Repository, history: History) -> Inputs:
    """The secret of a run that has begun; none where it began before there were any.

    Raises:
        UntrustedError: its key lies here, but the user does not trust it.
    """
    repository.keys.check(history.run)
    known = history.started.inputs if history.started else ""
    key = repository.keys.find(history.run) if known else b""
    if commitment(key) == known:
        return Inputs(inputs_key(key) if key else b"")
    return Inputs(missing=lacks_key(repository, history.run))


def lacks_key(repository: Repository, run: str) -> str:
    """What to do in a clone that has not the key of a run."""
    return (
        f"the run {run!r} has a key, which draws the inputs of its evaluator (rng) and seals its journal, and this "
        f"clone does not have it; copy evogit/keys/{run} of the Git folder in which the run began to "
        f"{repository.keys.folder}, or begin a new run (--name NAME)"
    )


def begin_inputs(run: StoredRun, settings: Settings, environ: Mapping[str, str]) -> Inputs:
    """The secret of a run that begins or goes on; that of a deterministic run is the same for the same seed.

    Raises:
        RefusedError: the run began in another clone, and its key is not here.
        UntrustedError: it has no key and began elsewhere, or its key comes from elsewhere.
        RepositoryError: a new one cannot be kept.
    """
    keys, name = run.repository.keys, run.history.run
    if run.history.started:
        run.repository.trust.check(run.repository.keys.origin(run.history.run, run.history.first_start))
        found = inputs_of(run.repository, run.history)
        if found.missing:
            raise RefusedError(found.missing)
        return found
    key = keys.share(name, of_person(environ, settings.seed)) if settings.deterministic else keys.make(name)
    return Inputs(inputs_key(key))

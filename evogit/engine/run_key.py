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
from evogit.text import one_line

HOST = 60
"""Characters of a host's name that are shown, which may be a stranger's choice."""


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

    Candidates of a run may run in this process, so other hosts' entries count from its first entry on only with its
    seal. A run that began here without a key goes on alone, unless the user trusts what others wrote.

    Raises:
        RefusedError: the run began in another clone, and its key is not here; or others wrote entries before it began.
        UntrustedError: it has no key and began elsewhere, or others take part; or its key comes from elsewhere.
        RepositoryError: a new one cannot be kept.
    """
    keys, name = run.repository.keys, run.history.run
    if run.history.started:
        run.repository.trust.check(run.repository.keys.origin(run.history.run, run.history.first_start))
        found = inputs_of(run.repository, run.history)
        if found.missing:
            raise RefusedError(found.missing)
        if not run.journal.key:
            _stay_alone(run)
        return found
    if not run.journal.key and run.journal.hosts[1:]:
        raise RefusedError(
            f"{', '.join(one_line(each, HOST) for each in run.journal.hosts[1:])} wrote entries of the run {name!r}, "
            "which has not begun; begin one of another name (--name NAME)"
        )
    key = keys.share(name, of_person(environ, settings.seed)) if settings.deterministic else keys.make(name)
    return Inputs(inputs_key(key))


def _stay_alone(run: StoredRun) -> None:
    """Leave out other hosts' entries of a run without a key, unless the user trusts them.

    Raises:
        UntrustedError: there are some, and they count already.
    """
    history, repository = run.history, run.repository
    assert history.first_start
    others = ", ".join(one_line(each, HOST) for each in run.journal.hosts[1:])
    effect = f"the run {history.run} has no key, and {others} wrote to it: their candidates would run and count here"
    claim = repository.keys.start(history.run, history.first_start, "run", effect)
    if others:
        repository.trust.check([claim])
    elif not repository.trust.accepts(claim):
        run.journal.stay_alone()

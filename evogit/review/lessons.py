"""Lessons of steps: proven by a replay on other parents before they are kept, and withdrawn when a replay fails."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice

from msgspec.structs import replace

from evogit.core import Candidate
from evogit.events import Lesson
from evogit.history.context import RunContext, redactor
from evogit.history.lessons import MAX_LESSON_CHARS
from evogit.history.standing import compare, decimals
from evogit.repository import clean, reason_in
from evogit.review.blaming import step_title
from evogit.review.crossing import put_on
from evogit.review.landing import compare_trees
from evogit.review.minimizing import check
from evogit.review.verifying import needed_repeats
from evogit.text import one_line

MAX_PARENTS, MAX_TRIED = 2, 200
"""Other parents on which a step is replayed, and candidates on which that is tried to find them."""

MIN_REPEATS = 2
"""Repeats of a noisy evaluation in a replay: fewer say nothing of the noise."""


def draft_lesson(context: RunContext, step: Candidate, text: str) -> Lesson:
    """Return what a step teaches, not proven yet; without a text its title and reason.

    Raises:
        RefusedError: the step cannot be replayed, or it changed nothing where it was made.
    """
    check(context, step)
    history, repository = context.history, context.repository
    reason = reason_in(repository.message(step.commit))
    text = text or ": ".join(filter(None, (step_title(history, step), reason)))
    text = one_line(redactor(context.task, repository, history).text(clean(text)), MAX_LESSON_CHARS)
    files = tuple(repository.changed_paths(history.phylogeny[step.parents[0]].tree, step.tree))
    by, run, goal, metric = repository.user, history.run, context.task.purpose, history.metric.name
    return Lesson(by=by, step=step.commit, run=run, text=text, goal=goal, metric=metric, files=files)


def replay_parents(context: RunContext, lesson: Lesson) -> list[tuple[str, str, str]]:
    """Return the parents of a replay: a candidate, and its trees without and with the step.

    They are candidates that lack the step, else descendants from which it can be taken out. Those on which it was not
    proven come first, and those that share least with its own parent: the oldest that lack it, the youngest that have
    it.
    """
    history, step, put = context.history, context.history.phylogeny[lesson.step], partial(put_on, context.repository)
    graph, own = history.phylogeny, history.phylogeny[step.parents[0]]
    valid = [each for each in graph if history.fitness(each.commit) is not None and each.commit not in history.pruned]
    valid = [each for each in valid if not each.trial and each.tree not in (own.tree, step.tree)]
    having = graph.descendants(step.commit)
    lacking = [each for each in valid if each.commit not in having][:MAX_TRIED]
    later = [each for each in valid if each.commit in having][: -1 - MAX_TRIED : -1]
    applied = ((each.commit, each.tree, put(own.tree, each.tree, step.tree)) for each in lacking)
    removed = ((each.commit, put(step.tree, each.tree, own.tree), each.tree) for each in later)
    fit = ((onto, a, b) for onto, a, b in chain(applied, removed) if a and b and a != b)
    found = islice(fit, MAX_PARENTS + len(lesson.gains))
    return sorted(found, key=lambda parent: parent[0] in lesson.gains)[:MAX_PARENTS]


async def replay(context: RunContext, lesson: Lesson, provider: str) -> tuple[Lesson, str]:
    """Evaluate a step's change on other parents, each beside the parent; none of it becomes a candidate.

    Where scores are noisy its own parent is among them, because the step was chosen for its score.

    Returns:
        The lesson with these gains, and why it does not hold; empty if each gain is beyond noise in the direction of
        the step's own.

    Raises:
        UntrustedError: the user does not trust the key of the run.
        EvoGitError: the evaluator or the sandbox cannot be used.
    """
    history, repeats = context.history, needed_repeats(context.history, context.task)
    context.repository.keys.check(history.run)  # before long work, as nobody could write its result
    task = replace(context.task, repeats=max(repeats, MIN_REPEATS) if repeats else 0)
    step = history.phylogeny[lesson.step]
    own, parents = history.phylogeny[step.parents[0]], replay_parents(context, lesson)
    recorded = compare(history.scores, step.commit, own.commit)
    if recorded is None or not recorded.gain:
        return lesson, "it is neither better nor worse than its parent"
    if not parents:
        return lesson, "it can be put on no other valid candidate, nor taken out of one; try an older step of its line"
    wanted, failures, gains = "better" if recorded.gain > 0 else "worse", list[str](), {**lesson.gains}
    if repeats:
        parents.insert(0, (own.commit, own.tree, step.tree))
    else:
        gains[own.commit] = recorded.gain
    seed, pairs = history.phylogeny[history.seed or ""].tree, [(before, after) for _, before, after in parents]
    trials = await compare_trees(context.repository, task, seed, pairs, [history.split], provider)
    for (onto, *_), trial in zip(parents, trials[history.split], strict=True):
        compared = trial.compared(history.metric)
        if compared and compared.verdict == wanted:
            gains[onto] = compared.gain
            continue
        places = decimals(compared.value, compared.over, margins=[compared.margin]) if compared else 0
        result = compared.between(places) if compared else f"{trial.after.status}: {trial.after.reason}"
        failures.append(f"on {onto[:7]} it came to {result}, not to something {wanted}")
    return replace(lesson, gains=gains), "; ".join(failures)

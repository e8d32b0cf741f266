"""What was done in a run, counted, in words."""

from __future__ import annotations

from evogit.cli.text import count
from evogit.history import History


def count_words(history: History) -> list[str]:
    """What was done so far, in a few words each, which add up.

    What is evaluated or pending is the seed, the candidates among the proposals, and what people and `minimize` added.
    """
    counts = history.counts
    words = [f"{counts.evaluated:,} evaluated", f"{counts.failed:,} failed"]
    words += [count(counts.repeated, "repeat")] if counts.repeated else []
    words += [f"{count(counts.references, 'evaluation')} of references"] if counts.references else []
    words += [f"{counts.cached:,} cached"] if counts.cached else []
    if counts.proposals:
        parts = [count(counts.proposed, "candidate")]
        alike = f" ({counts.alike:,} nearly the same)" if counts.alike else ""
        parts += [count(counts.duplicates, "duplicate") + alike] if counts.duplicates else []
        unusable = counts.failed_proposals - counts.unanswered
        parts += [f"{unusable:,} unusable"] if unusable else []
        parts += [f"{counts.unanswered:,} without a reply"] if counts.unanswered else []
        words.append(f"{count(counts.proposals, 'proposal')}: {', '.join(parts)}")
    words += [count(counts.tactics, "tactic")] if counts.tactics else []
    others = len(history.phylogeny) - (history.seed is not None) - counts.proposed
    words += [f"{others:,} by people or minimize"] if others else []
    words += [f"{len(history.set_aside):,} set aside"] if history.set_aside else []
    words += [f"{len(history.unmeasured):,} not measured (the machine was busy)"] if history.unmeasured else []
    return [*words, *([f"{len(history.pending):,} pending"] if history.pending else [])]

"""Settings of another system's configuration that may change a score and have no effect here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

SCORE = re.compile(
    r"(^|_)(scor(es?|er|ing)|metrics?|fitness|objectives?|rewards?|direction|aggregat\w*|(min|max)imi[sz]\w*|"
    r"is_better|penalt(y|ies)|normali[sz]\w*|judge|evaluators?)(_|$)"
)
"""Names of settings that tell how a score comes about."""
EVALUATORS = ("evaluator", "evaluation", "verifier")
"""Sections in which every setting may change a score."""
OTHERS = ("llm", "prompt", "models", "agent", "environment", "metadata", "solution", "task")
"""Sections that are not about scores."""
MAX_SHOWN = 5
_HARMLESS = """
timeout max_retries memory_limit_mb cpu_limit parallel_evaluations distributed cascade_evaluation cascade_thresholds
use_llm_feedback llm_feedback_weight llm_as_judge enable_artifacts max_artifact_storage evaluation_file file_suffix
is_image_mode inject_evaluator_context early_stopping_metric diversity_metric
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Settings of OpenEvolve and SkyDiscover that are heeded, have a note of their own, or change no score."""

_VERIFIER = """
timeout_sec env user environment_mode environment collect network_mode allow_internet allowed_hosts max_timeout_sec
multi_step_reward_strategy
"""
VERIFIER = frozenset(_VERIFIER.split())
"""The same of Harbor's [verifier]."""


def told_unheeded(config: Mapping[str, Any], system: str, known: Collection[str] = HARMLESS) -> Iterator[str]:
    """The note about settings that may change a score and are none of those that are known."""
    found = sorted(_unheeded(config, known))
    if found:
        more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
        yield (
            f"its configuration sets {', '.join(found[:MAX_SHOWN])}{more}, which EvoGit does not know: if that changes "
            f"the score in {system}, the score here is another one"
        )


def _unheeded(config: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    for name, value in config.items():
        if value in (None, {}, []):
            continue
        if name in EVALUATORS and isinstance(value, dict):
            yield from (f"{name}.{key}" for key in value if key not in known and value[key] not in (None, {}, []))
        elif name not in (*OTHERS, *EVALUATORS, *known) and SCORE.search(name.lower()):
            yield name
        elif name not in OTHERS and isinstance(value, dict):
            yield from (f"{name}.{key}" for key in value if key not in known and SCORE.search(key.lower()))

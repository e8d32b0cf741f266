"""Stands in for what evaluators import of OpenEvolve."""

from foreign_result import EvaluationResult

__all__ = ["EvaluationResult"]

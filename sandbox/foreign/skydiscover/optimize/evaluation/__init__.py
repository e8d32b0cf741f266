"""Stands in for the module of that name."""

from foreign_result import EvaluationResult

__all__ = ["EvaluationResult"]

"""Attacks on a task's evaluator: candidates that score without earning it, with the line to blame and the remedy."""

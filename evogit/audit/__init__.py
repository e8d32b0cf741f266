"""Attacks on a task's evaluator: candidates that score without earning it, with the line to blame and the remedy.

A task goes in, findings come out. Start with `laboratory.py`, which evaluates what `attacks.py` and a model propose.
"""

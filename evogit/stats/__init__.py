"""Estimates, pairwise strengths, tests of a comparison: pure functions of numbers and ids.

Start with `estimates.py`; each module names the source of its formulas.
"""

"""Estimates, pairwise strengths, tests of a comparison, delta debugging: pure functions of numbers and ids."""

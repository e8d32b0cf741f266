"""Stands in for what evaluators import of ShinkaEvolve."""

"""Stands in for AlphaEvolve's package, of which evaluators use the records of results."""

"""Stands in for the package of that name, in which newer versions have what evaluators import."""

"""Fitness without a number: pairs of candidates are compared by models or people, and strengths are found from that."""

"""What the journals add up to: phylogeny, scores, counts, decisions."""

from evogit.history.history import Counts, History, Spending

__all__ = ["Counts", "History", "Spending"]

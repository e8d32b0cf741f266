"""The sum of the journals: phylogeny, scores, counts, decisions.

Entries go in one by one, questions are answered at any time. Start with `history.py`, one method per event; `state.py`
has the questions, `scores.py` the fitness and its noise, `standing.py` a candidate's record for all faces.
"""

from evogit.history.history import Counts, History, Spending

__all__ = ["Counts", "History", "Spending"]

"""The loop of a run and its parts: budget, account, evaluations, confirmation, stages and branches.

Settings and a repository go in, a journal grows. Start with `engine.py`, whose loop asks for moves; `evaluations.py` is
the queue of candidates.
"""

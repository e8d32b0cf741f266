"""The text that an agent is shown: goal, code, lineage, feedback and ideas, with a budget of tokens.

A `Background` (the facts, gathered by `breeding/background.py`) goes in, a text with counts by section comes out.
Start with `briefing.py`, which orders the sections; `digest.py` writes them, `relevance.py` chooses excerpts.
"""

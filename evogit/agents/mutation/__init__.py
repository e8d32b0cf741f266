"""The offline mutator: typed edits of Python sources without a model, and the tuning of their numbers.

A brief goes in, a proposal with one or a few edits comes out. Start with `mutator.py`; `mix.py` has the chances of the
operators.
"""

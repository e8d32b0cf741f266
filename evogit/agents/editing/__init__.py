"""Replies of models: text goes in, changed files come out, or an error that the model can repair.

Start with `reply.py`, the format of blocks; `calls.py` has the tool calls of sessions.
"""

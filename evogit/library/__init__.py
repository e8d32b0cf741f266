"""EvoGit for Python programs: evolve by a function of the caller's own, and read runs as objects.

Start with `evolving.py` for `evogit.evolve`, with `result.py` for finished runs.
"""

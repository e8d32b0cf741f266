"""EvoGit for Python programs: evolve by a function of the caller's own, and read runs as objects."""

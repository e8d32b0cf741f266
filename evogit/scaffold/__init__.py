"""What `init` and `new` detect in a repository and write for its task.

A folder goes in, a `Project` with commands, paths and questions comes out. Start with `detect.py`.
"""

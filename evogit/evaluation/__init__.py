"""From a candidate to its evaluation: evaluator processes, and the interface for authors of tasks.

A tree and a split go in, an `Evaluation` with evidence comes out. Start with `evaluator.py` (places and jobs), then
`evaluator_main.py` (inside the process) and `program.py` (what a task's author calls).
"""

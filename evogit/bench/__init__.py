"""The referee: methods compared on tasks at equal cost, run by run, and the claims that the comparison allows.

Methods and tasks go in, files with curves and a report come out. Start with `bench.py`; `comparison.py` has the
statistics.
"""

"""Workers that a cluster starts: programs of ours beside the run, which open a line to a worker for each that is asked.

So that nothing of Ray or Slurm runs in the engine, and it can die without the run.
"""

"""What the loop of a run is made of: budget, account, evaluations, confirmation, steering, projections."""

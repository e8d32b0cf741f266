"""The offline mutator: typed edits of sources without a model, and the tuning of their numbers."""

"""From a move to a candidate commit: merges, fingerprints of trees, credit of operators and models, claims."""

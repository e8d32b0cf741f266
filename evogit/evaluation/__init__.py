"""From a candidate to its evaluation: evaluator processes, and what authors of tasks write against."""

"""The referee: methods compared on tasks at equal cost, run by run, and what the comparison may claim."""

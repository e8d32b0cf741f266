"""The text that commands print about candidates and runs: lines and tables, the same wherever they appear."""

"""What commands print of candidates and runs: lines and tables, the same wherever they appear."""

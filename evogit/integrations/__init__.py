"""EvoGit as a part of other systems; each module needs the other system to be installed."""

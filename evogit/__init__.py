"""EvoGit: a population of coding agents improves a code base; the commit graph is the phylogeny."""

__version__ = "0.1.0"

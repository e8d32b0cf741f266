"""EvoGit: a population of coding agents improves a code base; the commit graph is the phylogeny."""

from evogit.program import Case, Invalid

__all__ = ["Case", "Invalid"]
__version__ = "0.1.0"

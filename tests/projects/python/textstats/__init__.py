from textstats.words import most_common, words

__all__ = ["most_common", "words"]

"""What a question can cost at most, known before it is sent, and what an endpoint cannot have counted."""

from __future__ import annotations

import re
import unicodedata

from evogit.llm import TokenUsage

USUAL_REPLY = 16_384  # tokens of a reply where a limit is in force and nobody said how many
LEAST_REPLY = 1000  # tokens of a reply that is worth asking for
USUAL_PROMPT = 200_000  # tokens; that a longer question is too dear does not mean that no money is left
PREAMBLE = 500  # tokens that an endpoint's template puts before and around what it is sent, at most
EACH_MESSAGE = 16  # the same around each message
PIECE = 100  # characters that are normalised at once: a run of marks takes the square of its length
SEAM = 8  # bytes that a text can have more when it is normalised as a whole, for each place where it was cut
_LIGATURES = re.compile("[\ufb13-\ufdfc]")
_LONGEST_LIGATURE = 33

LONGEST_TOKEN = 128  # bytes of the longest tokens that are in use: runs of spaces


def most_tokens(text: str) -> int:
    """More than which no tokenizer makes of a text: a token has a byte, after the text was normalised or before."""
    if text.isascii():
        return len(text)
    rest, ligatures = _LIGATURES.subn("", text)
    pieces = (unicodedata.normalize("NFKC", rest[at : at + PIECE]) for at in range(0, len(rest), PIECE))
    normal = _LONGEST_LIGATURE * ligatures + sum(SEAM + _size(piece) for piece in pieces)
    return max(_size(text), normal)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def is_plausible(usage: TokenUsage, prompt: int, reply: int) -> bool:
    """Whether so many bytes of prompt and reply can have had as few tokens as an endpoint says."""
    return usage.prompt * LONGEST_TOKEN >= prompt and usage.completion * LONGEST_TOKEN >= reply

"""Files that coding programs obey, or set themselves up by: no candidate writes them for the next one's program."""

from __future__ import annotations

import re
import unicodedata

FILES = (
    r"(?:agents?|agents\.override|claude|claude\.local|codex|copilot-instructions|crush|crush\.local|gemini|hermes|iflow|"
    r"qwen|warp)\.md|\.(?:hermes|replit)\.md|"
    r"\.?(?:mcp|opencode|crush|claude)\.jsonc?|mini\.ya?ml|"
    r"\.(?:aider|goose|mini|roorules|clinerules|cursorrules|windsurfrules|kilocodemodes|roomodes|rules|env)[^/]*"
)
"""Names of files, as a pattern in lower case."""

FOLDERS = (
    "agents?|aider|amazonq|augment|claude|clinerules|codex|continue|copilot|crush|cursor|factory|gemini|goose|hermes|iflow|"
    "junie|kilocode|kimi|kiro|mini-swe-agent|openhands|opencode|pi|qwen|roo|roorules|trae|vibe|vscode|windsurf|zed"
)
"""Names of folders, without the dot before them, as such a pattern."""

_GITHUB = r"\.github/(?:copilot[^/]*|instructions|prompts|chatmodes|agents|skills|hooks)(?:/.*)?"

_PATHS = re.compile(rf"(?:.*/)?(?:{FILES}|\.(?:{FOLDERS})(?:/.*)?|{_GITHUB})", re.DOTALL)


def instructs(path: str) -> bool:
    """Whether a coding program may take what is at the path for its instructions, settings or plugins.

    In any folder, since programs read those of the folder in which they work, and in any spelling that some file system
    takes for the same.
    """
    return bool(_PATHS.fullmatch("/".join(map(_folded, path.split("/")))))


def _folded(name: str) -> str:
    if name.isascii():
        return name.lower().rstrip(". ")
    seen = "".join(each for each in unicodedata.normalize("NFKC", name) if unicodedata.category(each) != "Cf")
    return seen.casefold().rstrip(". ")

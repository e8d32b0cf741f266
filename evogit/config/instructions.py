"""Files that agents and tools obey: a candidate changes none of them for the next one's program by a wildcard."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evogit.text import folded_name

FILES = (
    r"(?:agents?|agents\.override|claude|claude\.local|codex|conventions|copilot-instructions|crush|crush\.local|gemini|"
    r"hermes|iflow|qwen|replit|skill|warp)\.mdx?|\.(?:hermes|replit)\.md|"
    r"\.?(?:mcp|opencode|crush|claude)\.jsonc?|mini\.ya?ml|\.?mise(?:\.[^/]*)?\.toml|"
    r"(?:augment|openhands|copilot|cursor|windsurf|cline)[_-](?:guidelines|instructions|rules)(?:\.(?:mdc?|txt))?|"
    r"\.(?:aider|augment|goose|mini|openhands|replit|roorules|clinerules|cursorrules|windsurfrules|kilocodemodes|"
    r"roomodes|rules|env|tool-versions|npmrc)[^/]*"
)
"""Names of files, as a pattern in lower case."""

FOLDERS = (
    "agents?|aider|amazonq|augment|claude|clinerules|codex|continue|copilot|crush|cursor|devcontainer|factory|gemini|goose|"
    "hermes|idea|iflow|junie|kilocode|kimi|kiro|mini-swe-agent|mise|openhands|opencode|pi|qwen|roo|roorules|trae|vibe|"
    "vscode|windsurf|zed"
)
"""Names of folders, without the dot before them, as such a pattern."""

_GITHUB = r"\.github/(?:copilot[^/]*|instructions|prompts|chatmodes|agents|skills|hooks)(?:/.*)?"

_PATHS = re.compile(rf"(?:.*/)?(?:{FILES}|\.(?:{FOLDERS})(?:/.*)?|{_GITHUB})", re.DOTALL)


def instructs(path: str) -> bool:
    """Return True if a program may read the path as its instructions, settings or plugins."""
    return bool(_PATHS.fullmatch("/".join(map(folded_name, path.split("/")))))


def names_dots(path: str, globs: Iterable[str]) -> bool:
    """Return True if one glob names each dotted part of the path: tools read such files as settings."""
    dotted = {part for part in path.split("/") if folded_name(part).startswith(".")}
    return not dotted or any(dotted <= set(glob.split("/")) for glob in globs)

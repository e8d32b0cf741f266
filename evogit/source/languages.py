"""Languages other than Python: which files are read by a grammar of tree-sitter, where the extra `languages` is there.

Version 1 of tree-sitter-language-pack fetches grammars over the network when they are first used, so that only older
ones, which bring them all along, are taken. Nothing of it is imported before a file needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from evogit.source.syntax_parts import MAX_SOURCE_BYTES, Source
from evogit.source.tree_reader import Float, TreeReader, top_parts

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

EXTRA = "pip install 'evogit[languages]'"
"""What a person types to have these languages read."""

GRAMMARS: Mapping[str, str] = {
    ending: grammar
    for grammar, endings in {
        "c": ("c",),
        "cpp": ("cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "ipp"),
        "csharp": ("cs",),
        "cuda": ("cu", "cuh"),
        "d": ("d",),
        "dart": ("dart",),
        "elixir": ("ex", "exs"),
        "fortran": ("f90", "f95", "f03", "f08"),
        "glsl": ("glsl", "vert", "frag", "comp"),
        "go": ("go",),
        "groovy": ("groovy",),
        "java": ("java",),
        "javascript": ("js", "cjs", "mjs", "jsx"),
        "julia": ("jl",),
        "kotlin": ("kt", "kts"),
        "lua": ("lua",),
        "luau": ("luau",),
        "nim": ("nim",),
        "objc": ("mm",),
        "ocaml": ("ml",),
        "odin": ("odin",),
        "pascal": ("pas", "pp"),
        "perl": ("pl", "pm"),
        "php": ("php",),
        "r": ("r",),
        "ruby": ("rb",),
        "rust": ("rs",),
        "scala": ("scala", "sc"),
        "solidity": ("sol",),
        "swift": ("swift",),
        "tsx": ("tsx",),
        "typescript": ("ts", "cts", "mts"),
        "verilog": ("v", "sv"),
        "wgsl": ("wgsl",),
        "zig": ("zig",),
    }.items()
    for ending in endings
}
"""How the name of a file ends, in small letters -> the grammar of its language."""


def grammar(path: str) -> str:
    """The language of a program in a file of this name, empty for Python and whatever is not known."""
    return GRAMMARS.get(path.rpartition(".")[2].lower(), "") if "." in path else ""


def is_read(path: str) -> bool:
    """Whether a file of this name is read by a grammar that is here."""
    return grammar(path) != "" and is_installed()


@cache
def is_installed() -> bool:
    """Whether grammars are here: a version of the package that brings them along."""
    found = find_spec("tree_sitter_language_pack")
    folders = found.submodule_search_locations if found else None
    return any(Path(folder, "bindings").is_dir() for folder in folders or ())


@lru_cache(maxsize=64)
def read(language: str, content: bytes) -> Source | None:
    """The places for edits in a program; None for what is large or has none.

    Cached by content, because reading costs ten times more than an edit.
    """
    found = _reader(language, content)
    source = found.source() if found else None
    return source if source and (source.sites or source.blocks) else None


@lru_cache(maxsize=512)
def named_floats(language: str, content: bytes) -> tuple[Float, ...]:
    """The floats that a program names outside of functions; nothing of what is large."""
    found = _reader(language, content)
    return tuple(found.floats) if found else ()


def tops(language: str, content: bytes) -> list[tuple[str, int]]:
    """Name and end of what stands at the top of a program, as whole lines; nothing where it is not understood."""
    root = _root(language, content)
    return top_parts(root, content) if root and not root.has_error else []


@lru_cache(maxsize=256)
def faults(language: str, content: bytes) -> int:
    """How many places of a program its grammar does not understand: a change must not make them more."""
    root = _root(language, content)
    return _faults(root) if root and root.has_error else 0


def _faults(root: Node) -> int:
    count, todo = 1, [root]
    while todo:
        node = todo.pop()
        count += node.is_error or node.is_missing
        todo += [child for child in node.children if child.has_error or child.is_missing]
    return count


@lru_cache(maxsize=4)
def _reader(language: str, content: bytes) -> TreeReader | None:
    root = _root(language, content)
    if root is None:
        return None
    reader = TreeReader(content, language)
    reader.walk(root)
    return reader


def _root(language: str, content: bytes) -> Node | None:
    parser = _parser(language) if len(content) <= MAX_SOURCE_BYTES else None
    return parser.parse(content).root_node if parser else None


@cache
def _parser(language: str) -> Parser | None:
    """What parses a language; None where its grammar is not here or is made for another tree-sitter."""
    from tree_sitter_language_pack import get_parser

    try:
        parser: Parser = get_parser(language)  # type: ignore[arg-type,unused-ignore]  # one of the package's own names
    except (LookupError, ValueError):
        return None
    return parser

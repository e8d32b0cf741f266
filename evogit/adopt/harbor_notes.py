"""What a person is told of a Harbor task that is not here as it is there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evogit.adopt.dockerfile import Recipe
from evogit.adopt.foreign_task import File
from evogit.adopt.harbor_config import MAIN, is_separate
from evogit.adopt.image_places import Places, told_lost
from evogit.adopt.installs import commands, told_unknown
from evogit.adopt.sources import requirement
from evogit.adopt.undone import told_base
from evogit.adopt.yaml_text import at, read_yaml

TABLES = (("environment",), ("verifier", "environment"))
"""Where a task.toml tells of machines."""
FORBIDDEN = frozenset(
    ["bwrap", "chroot", "docker", "gdb", "iptables", "ltrace", "mount", "nsenter", "strace", "systemctl", "unshare"]
)
"""Programs that need rights which no sandbox gives: to look into others, to make namespaces, to speak to daemons."""
COMPOSED = ("docker-compose.yaml", "docker-compose.yml")


def told_unlike(
    config: Mapping[str, Any], recipe: Recipe, places: Places, named: Sequence[str], *, is_step: bool
) -> Iterator[str]:
    """What is not as Harbor does it."""
    if is_step:
        yield "it is a step of a task, and begins with what the image has, not with what the steps before it leave"
    if is_separate(config):
        yield "its verifier is a container of its own there; here it runs beside the candidate"
    if recipe.workdir != "/" and places.folder not in places.links:
        yield f"its programs expect {recipe.workdir}, where a sandbox has the system: they run elsewhere"
    known = ("tests", "logs", *(path.split("/")[1] for path in places.links), *places.own, recipe.workdir.split("/")[1])
    if beyond := sorted({path for path in named if path.split("/")[1] not in known} - recipe.files.keys()):
        yield f"its instructions name {', '.join(beyond)}, where a sandbox has the system: no candidate can bring that"


def told_of_verifier(tests: Mapping[str, File], asked: Sequence[str], images: Sequence[str]) -> Iterator[str]:
    """What is said of what a verifier runs: programs of unknown origin, or that a sandbox forbids, other versions.

    `asked` are the packages that it installs, `images` those of the image.
    """
    yield from told_unknown(tests["test.sh"][0].decode(errors="replace"))
    image, verifier = (dict(each for text in texts for each in requirement(text)) for texts in (images, asked))
    for name in sorted(image.keys() & verifier.keys()):
        both = image[name], verifier[name]
        if both[0] != both[1] and all("==" in each for each in both) and not name.startswith("pytest"):
            yield f"its image installs {both[0]}, its verifier {both[1]}, which programs of both have here"
    texts = {path: data.decode(errors="replace") for path, (data, _) in tests.items() if path.endswith((".sh", ".py"))}
    run = {posixpath.basename(word) for path in texts if path.endswith(".sh") for word, *_ in commands(texts[path])}
    said = {name for text in texts.values() for name in FORBIDDEN if re.search(rf"[\"'/]{name}[\"' ]", text)}
    if found := sorted(said | run & FORBIDDEN):
        yield f"its verifier runs {', '.join(found)}, which a sandbox forbids: what it finds may be wrong"


def told_all_lost(places: Places, verifier: Recipe) -> Iterator[str]:
    """What is said of files that a sandbox cannot have."""
    lost = [path for path in places.lost if not path.startswith("/tests/")]
    yield from told_lost([path for path in lost if path not in verifier.files])
    theirs = [path for path in lost if path in verifier.files]
    yield from told_lost(theirs, "its verifier's image", "the candidate or the system")


def told_missing(config: Mapping[str, Any], beside: Mapping[str, File]) -> Iterator[str]:
    """What is said of images that have no Dockerfile, of services beside them, and of other machines."""
    if "Dockerfile" not in beside:
        yield from told_base(str(at(config, "environment", "docker_image") or ""), "its image")
    yield from told_base(str(at(config, "verifier", "environment", "docker_image") or ""), "its verifier's image")
    if any(at(config, *table, "gpus") or at(config, *table, "tpu") for table in TABLES):
        yield "it asks for a graphics processor, which no sandbox has"
    composed = "\n".join(beside[name][0].decode(errors="replace") for name in COMPOSED if name in beside)
    services = at(read_yaml(composed), "services")
    others = [name for name in services if name != MAIN] if isinstance(services, dict) else []
    if others:
        yield f"its docker-compose.yaml starts {', '.join(others)}, which is not done here: no program will find that"

"""The systems that are compared, each at its defaults and, where it can, at the same parallelism."""

from __future__ import annotations

from systems.base import Job, Speaker, System
from systems.evogit import EvoGit, EvoGitSpeaker
from systems.gepa import GEPA, GEPASpeaker
from systems.openevolve import OpenEvolve, OpenEvolveSpeaker
from systems.plain import Plain, PlainSpeaker
from systems.shinka import Shinka, ShinkaSpeaker
from systems.skydiscover import SkyDiscover, SkyDiscoverSpeaker

__all__ = ["SPEAKERS", "SYSTEMS", "Job", "Speaker", "System"]

SPEAKERS: dict[str, Speaker] = {
    "evogit": EvoGitSpeaker(),
    "openevolve": OpenEvolveSpeaker(),
    "shinka": ShinkaSpeaker(),
    "skydiscover": SkyDiscoverSpeaker(),
    "gepa": GEPASpeaker(),
    "plain": PlainSpeaker(),
}
OPENEVOLVE = ("openevolve==0.4.0",)
SHINKA = ("shinka-evolve==0.0.7",)
SKYDISCOVER = ("skydiscover==0.1.0",)
GEPA_ = ("gepa==0.1.4", "litellm")
SYSTEMS: dict[str, System] = {
    each.name: each
    for each in (
        EvoGit("evogit-1", 1, speaker="evogit"),
        EvoGit("evogit-2", 2, speaker="evogit"),
        EvoGit("evogit-4", 4, speaker="evogit"),
        OpenEvolve("openevolve", 1, speaker="openevolve", packages=OPENEVOLVE),
        OpenEvolve("openevolve-2", 2, speaker="openevolve", packages=OPENEVOLVE),
        Shinka("shinka", 1, speaker="shinka", packages=SHINKA, share=0.25),
        Shinka("shinka-2", 2, {"cores": "4"}, speaker="shinka", packages=SHINKA, share=0.25),
        SkyDiscover("skydiscover", 1, speaker="skydiscover", packages=SKYDISCOVER),
        SkyDiscover(
            "skydiscover-ada", 1, {"search": "adaevolve"}, speaker="skydiscover", packages=SKYDISCOVER, share=0.5
        ),
        GEPA("gepa", 1, speaker="gepa", packages=GEPA_),
        Plain("hill-climbing", 1, {"parent": "climb"}, speaker="plain"),
        Plain("best-of-n", 1, {"parent": "seed"}, speaker="plain"),
    )
}

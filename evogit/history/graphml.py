"""A graph in GraphML, which programs that draw and measure graphs read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Attributes = Mapping[str, str | int | float]


def graphml(run: str, nodes: Mapping[str, Attributes], edges: Mapping[tuple[str, str], Attributes]) -> str:
    """Nodes by id and edges as (from, to), with what is known of each."""
    import networkx as nx  # 50 ms that only this needs

    drawn = nx.DiGraph(run=run)
    drawn.add_nodes_from(nodes.items())
    drawn.add_edges_from((*ends, told) for ends, told in edges.items())
    text: Any = "\n".join(nx.generate_graphml(drawn))
    return f"{text}\n"

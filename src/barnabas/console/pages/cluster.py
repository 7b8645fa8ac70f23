"""The cluster: `barnabas cluster info`, `cluster nodes`, `cluster quorum` and `broker logdirs`."""

from __future__ import annotations

import asyncio

from barnabas.cli.broker import log_dirs_of
from barnabas.cli.cluster import info_of
from barnabas.cli.cluster_nodes import nodes_of
from barnabas.cli.cluster_quorum import described_quorum
from barnabas.console.asked import Asked
from barnabas.console.page import Page, asked_section


async def cluster(asked: Asked) -> Page:
    """Make the page."""
    sections = await asyncio.gather(
        asked_section(asked.cluster, "info", "Summary", info_of),
        asked_section(asked.cluster, "nodes", "Nodes", nodes_of),
        asked_section(
            asked.cluster,
            "quorum",
            "Quorum",
            described_quorum,
            captions=("Metadata log", "Replicas of the metadata log"),
        ),
        asked_section(asked.cluster, "log_dirs", "Log directories", log_dirs_of),
    )
    return Page("Cluster", sections)

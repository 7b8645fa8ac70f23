"""Spark queries: `barnabas spark status`, and the sinks that `barnabas spark orphans` shows."""

from __future__ import annotations

import asyncio

from barnabas.cli.spark import NO_QUERY, orphans_of, queries_of
from barnabas.console.asked import Asked
from barnabas.console.page import Page, asked_section

_NOTE = "A query that is writing a batch is shown as well as one that died. `barnabas spark orphans --abort` ends them."


async def spark(asked: Asked) -> Page:
    """Make the page."""
    queries, sinks = await asyncio.gather(
        asked_section(
            asked.cluster,
            "queries",
            "Queries that commit their progress",
            lambda admin: queries_of(admin, asked.now_ms),
            links={"GROUP": asked.group_link, "TOPIC": asked.topic_link},
            empty=f"{NO_QUERY[:1].upper()}{NO_QUERY[1:]}.",
        ),
        asked_section(
            asked.cluster,
            "orphans",
            "Sinks with open transactions",
            lambda admin: orphans_of(admin, asked.now_ms),
            empty="No transaction of a Spark sink is open.",
        ),
    )
    return Page("Spark", [queries, sinks._replace(notes=[_NOTE]) if sinks.grids else sinks])

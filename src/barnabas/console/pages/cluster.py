"""The cluster: `barnabas cluster info`, `cluster nodes`, `cluster quorum`, `broker logdirs`, and the plans of moves.

A plan is what `barnabas cluster drain` and `cluster rebalance` print with `--dry-run`. A move may take hours, so the commands make it.
"""

from __future__ import annotations

import asyncio

from barnabas.cli.broker import log_dirs_of
from barnabas.cli.cluster import info_of
from barnabas.cli.cluster_moves import drain_preview, moves_in_progress, rebalance_preview
from barnabas.cli.cluster_nodes import nodes_of
from barnabas.cli.cluster_quorum import described_quorum
from barnabas.cli.failure import Failure
from barnabas.console.asked import Asked
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field, Form, Page, Section, asked_section, failed_section, section
from barnabas.protocol.errors import KafkaError

_PLAN = "The plan"
_FIELDS = (
    Field(
        "plan",
        "What would be moved by",
        "rebalance",
        "choice",
        (("rebalance", "evening out the brokers"), ("drain", "draining a broker")),
    ),
    Field("node", "Broker to drain", hint="3"),
)


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
        asked_section(
            asked.cluster,
            "moves",
            "Moves in progress",
            moves_in_progress,
            links={"TOPIC": asked.topic_link},
            empty="No replica is being moved.",
        ),
    )
    plan = asked.query.get("plan", "")
    planned = [await _planned(asked, plan)] if plan else []
    fields = [each._replace(value=asked.query.get(each.name, each.value)) for each in _FIELDS]
    return Page("Cluster", [*planned, *sections], form=Form(fields, button="Show the plan"))


async def _planned(asked: Asked, plan: str) -> Section:
    """Return what a drain or a rebalance would move; nothing is moved."""
    try:
        if plan == "rebalance":
            command = "barnabas cluster rebalance"
            done = await asked.cluster.ask(rebalance_preview)
        else:
            given = Given({"plan": plan, "node": asked.query.get("node", "")})
            given.choice("plan", "the plan", ("rebalance", "drain"))
            node = given.required_number("node", "the broker to drain")
            command = f"barnabas cluster drain {node}"
            done = await asked.cluster.ask(lambda admin: drain_preview(admin, node))
    except BadForm as error:
        return failed_section("plan", _PLAN, Failure(str(error)))
    except (KafkaError, Failure) as error:
        return failed_section("plan", _PLAN, error)
    captions = ("Partitions that would move", "Brokers before and afterwards")[-len(done.found.tables) :]
    found = section("plan", _PLAN, done.found, links={"TOPIC": asked.topic_link}, captions=captions)
    sentence = None if done.found.data["partitions"] else "Nothing would be moved."
    return found._replace(sentence=sentence, notes=done.notes, command=command)

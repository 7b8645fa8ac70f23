"""One group: `barnabas group describe` with members and partitions, and `barnabas group why`."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.cli.failure import Failure
from barnabas.cli.group import described_group, found_rebalances, last_rebalances
from barnabas.cli.output import Found
from barnabas.cli.share_deliveries import HELD_NOW
from barnabas.client.admin import Admin, GroupDescription, result
from barnabas.console.asked import Asked
from barnabas.console.chart_sections import chart_section
from barnabas.console.group_pace import Pace, found_pace, lag_words, pace_of, words_of
from barnabas.console.page import Page, Section, failed_section, section
from barnabas.console.rebalance_timeline import rebalance_timeline
from barnabas.console.topology_picture import topology_picture
from barnabas.protocol.errors import ErrorCode, KafkaError

_REBALANCES = 20
_CAPTIONS = {
    "GROUP": "Summary",
    "MEMBER-ID": "Members",
    "TOPIC": "Partitions",
    "SUBTOPOLOGY": "Subtopologies",
    "DELIVERIES-UNKNOWN": "Deliveries",
}
"""By the first column of a table."""


async def group(asked: Asked) -> Page:
    """Make the page of the group `id`."""
    group_id = asked.query.get("id", "")
    described, rebalances = await asyncio.gather(_described(asked, group_id), _rebalances(asked, group_id))
    if isinstance(described, KafkaError):
        failed = failed_section("group", "Summary", described, f"group {group_id}")
        return Page(f"Group {group_id}", [failed], is_missing=described.code == ErrorCode.GROUP_ID_NOT_FOUND)
    points = asked.sampler.history.group_lag(group_id)
    sections = [described, _pace(described.data, pace_of(points, asked.now_ms)), rebalances]
    if any(each.value is not None for each in points):
        sections.insert(2, chart_section("lag", "Lag in the last hour", points, "records"))
    return Page(f"Group {group_id}", sections)


async def _described(asked: Asked, group_id: str) -> Section | KafkaError:
    def find(admin: Admin) -> tuple[GroupDescription, Found]:
        found: GroupDescription = result(admin.describe_groups([group_id])[group_id])
        return found, described_group(admin, found, with_members=True, with_partitions=True)

    try:
        group, found = await asked.cluster.ask(find)
    except KafkaError as error:
        return error
    captions = ["Held back" if "WAITS" in each.columns else _CAPTIONS[each.columns[0]] for each in found.tables]
    described = section("group", "Members and lag", found, links={"TOPIC": asked.topic_link}, captions=captions)
    if group.type == "share":
        described = described._replace(notes=[HELD_NOW])
    return described._replace(topology=topology_picture(group.subtopologies))


def _pace(described: Any, pace: Pace | None) -> Section:
    """Return the pace of a group; its lag is that of the data of `described_group`."""
    lag, stable_lag = described["total_lag"], described["lag_to_last_stable_offset"]
    words = lag_words(described["type"], lag, stable_lag)
    found = section("pace", "Pace", found_pace(lag, stable_lag, pace))
    return found._replace(sentence=words_of(pace), notes=[words] if words else [])


async def _rebalances(asked: Asked, group_id: str) -> Section:
    try:
        shown = await asked.cluster.ask(lambda admin: last_rebalances(admin, group_id, _REBALANCES))
    except (KafkaError, Failure) as error:
        return failed_section("rebalances", "Rebalances", error, f"group {group_id}")
    found = section(
        "rebalances",
        "Rebalances",
        found_rebalances(shown),
        captions=("The last rebalances, and why", "Partitions that moved"),
        empty="The group has not rebalanced since this broker became its coordinator.",
    )
    return found._replace(timeline=rebalance_timeline(shown))

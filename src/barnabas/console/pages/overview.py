"""The first page of a cluster: its health, brokers, largest topics, the groups that are farthest behind, open transactions."""

from __future__ import annotations

from barnabas.cli.failure import Failure
from barnabas.cli.output import Found
from barnabas.console.asked import Asked
from barnabas.console.chart_sections import chart_section
from barnabas.console.look import Look, largest_topics, latest_groups, rates_found
from barnabas.console.page import ColumnLinks, Page, Section, failed_section, section
from barnabas.protocol.errors import KafkaError


async def overview(asked: Asked) -> Page:
    """Make the page; a browser with JavaScript gets each new look as an event."""
    now, before = await asked.sampler.latest()
    return Page("Overview", overview_sections(asked, now, before), events=asked.link("events"), seen_ms=now.time_ms)


def overview_sections(asked: Asked, now: Look, before: Look | None) -> list[Section]:
    """Return the sections of a look."""
    if (silence := now.silence) is not None:
        return [failed_section("health", "Health", silence), *_charts(asked)]
    topics: ColumnLinks = {"NAME": asked.topic_link, "TOPIC": asked.topic_link}
    groups: ColumnLinks = {"GROUP": asked.group_link}
    return [
        _section("health", "Health", now.health, captions=("Cluster status", "Problems")),
        _section("rates", "Volume", rates_found(now, before)),
        *_charts(asked),
        _section("nodes", "Nodes", now.nodes),
        _section("topics", "Largest topics", largest_topics(now, before), links=topics, empty="There is no topic yet."),
        _section("groups", "Groups by lag", latest_groups(now), links=groups, empty="There is no group yet."),
        _section(
            "held_back",
            "Transactions that hold readers back",
            now.held_back,
            links=topics,
            empty="No transaction holds readers back.",
        ),
    ]


def _charts(asked: Asked) -> list[Section]:
    history = asked.sampler.history
    return [
        chart_section("bytes_per_sec", "Growth of the logs", history.bytes_per_sec(), "bytes a second", is_bytes=True),
        chart_section("records_per_sec", "Records a second", history.records_per_sec(), "records a second"),
        chart_section("total_lag", "Lag of the groups below, together", history.total_lag(), "records"),
    ]


def _section(
    key: str,
    heading: str,
    found: Found | KafkaError | Failure,
    *,
    links: ColumnLinks | None = None,
    captions: tuple[str, ...] = (),
    empty: str | None = None,
) -> Section:
    if isinstance(found, KafkaError | Failure):
        return failed_section(key, heading, found)
    return section(key, heading, found, links=links, captions=captions, empty=empty)

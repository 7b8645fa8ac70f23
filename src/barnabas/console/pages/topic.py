"""One topic: `barnabas topic describe`, its size and rate, and every setting with its source and meaning."""

from __future__ import annotations

import asyncio

from barnabas.cli.output import Found, found_rows
from barnabas.cli.topic import listed_topics, topic_partitions, topic_summaries
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicMetadata, result
from barnabas.console.asked import Asked
from barnabas.console.chart_sections import chart_section
from barnabas.console.page import Link, Page, asked_section, failed_section
from barnabas.console.pages.topics import RATE_WINDOW_MS
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for


async def topic(asked: Asked) -> Page:
    """Make the page of the topic `name`."""
    name = asked.query.get("name", "")
    try:
        described = await asked.cluster.ask(lambda admin: _described(admin, name))
    except KafkaError as error:
        is_missing = error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
        failed = failed_section("summary", "Summary", error, f"topic {name}")
        return Page(f"Topic {name}", [failed], is_missing=is_missing)

    def summary(admin: Admin) -> Found:
        table = topic_summaries(admin, [described])[name]
        return Found(table.objects()[0], [table])

    def partitions(admin: Admin) -> Found:
        details = admin.describe_partitions([name])
        table = topic_partitions(admin, [described], details, everything=True)[name]
        return Found(table.objects(), [table])

    def sizes(admin: Admin) -> Found:
        found = listed_topics(admin, [described], sizes=True, window_ms=RATE_WINDOW_MS)
        return Found(found.data[0], [each._replace(vertical=True) for each in found.tables])

    first, *others = await asyncio.gather(
        asked_section(asked.cluster, "summary", "Summary", summary),
        asked_section(asked.cluster, "sizes", "Size and rate", sizes),
        asked_section(asked.cluster, "partitions", "Partitions", partitions),
        asked_section(asked.cluster, "configs", "Settings", lambda admin: _settings(admin, name)),
    )
    records = Link("Its records", asked.link("messages", topic=name))
    points = asked.sampler.history.topic_rate(name)
    if any(each.value is not None for each in points):
        others.insert(1, chart_section("records_per_sec", "Records a second", points, "records a second"))
    return Page(f"Topic {name}", [first._replace(links=[records]), *others])


def _described(admin: Admin, name: str) -> TopicMetadata:
    if not name:
        raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, "the address names no topic")
    found: TopicMetadata = result(admin.describe_topics([name])[name])
    return found


def _settings(admin: Admin, name: str) -> Found:
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = result(admin.describe_configs([resource], documentation=True)[resource])
    rows = [
        (each.name, "(hidden)" if each.sensitive else each.value, each.source.name, each.documentation)
        for each in entries
    ]
    return found_rows(("KEY", "VALUE", "SOURCE", "DOCUMENTATION"), rows)

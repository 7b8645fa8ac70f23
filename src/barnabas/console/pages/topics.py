"""The topics of a cluster: `barnabas topic list --sizes --rates`, page by page."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.output import Found
from barnabas.cli.topic import listed_topics
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.listing import page_of
from barnabas.console.page import Filter, Page, Paging, failed_section, section, sentence_of
from barnabas.protocol.errors import KafkaError

RATE_WINDOW_MS = 300_000


class _Listed(NamedTuple):
    """Topics; `without` says why sizes and rates are missing."""

    found: Found
    paging: Paging
    without: KafkaError | None


async def topics(asked: Asked) -> Page:
    """Make the page; `q` is a part of names, `internal` shows internal topics too."""
    part, internal = asked.query.get("q", ""), asked.query.get("internal") == "1"
    chosen = Filter(part, ("internal", "Internal topics too"), internal)

    def link(page: int) -> str:
        return asked.link("topics", q=part or None, internal="1" if internal else None, page=page)

    def find(admin: Admin) -> _Listed:
        named = [each for each in admin.list_topics(internal=internal) if part.lower() in each.name.lower()]
        shown, paging = page_of(named, asked.number("page", 1), link)
        try:
            return _Listed(listed_topics(admin, list(shown), sizes=True, window_ms=RATE_WINDOW_MS), paging, None)
        except KafkaError as error:
            return _Listed(listed_topics(admin, list(shown)), paging, error)

    try:
        found, paging, without = await asked.cluster.ask(find)
    except (KafkaError, Failure) as error:
        return Page("Topics", [failed_section("topics", "Topics", error)], chosen)
    empty = f"No topic's name contains “{part}”." if part else "There is no topic yet."
    listed = section("topics", "Topics", found, links={"NAME": asked.topic_link}, empty=empty)
    if without is not None:
        listed = listed._replace(sentence=f"Sizes and rates are not known. {sentence_of(without)}")
    return Page("Topics", [listed], chosen, paging)

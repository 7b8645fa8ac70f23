"""Transactions: `barnabas txn doctor` and `barnabas txn list`, page by page."""

from __future__ import annotations

import asyncio

from barnabas.cli.failure import Failure
from barnabas.cli.output import Found
from barnabas.cli.txn import held_back, listed_transactions
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.listing import page_of
from barnabas.console.page import Filter, Page, Paging, Section, asked_section, failed_section, section
from barnabas.protocol.errors import KafkaError


async def transactions(asked: Asked) -> Page:
    """Make the page; `q` is a part of transactional ids."""
    part = asked.query.get("q", "")
    held, (listed, paging) = await asyncio.gather(
        asked_section(
            asked.cluster,
            "held_back",
            "Transactions that hold readers back",
            lambda admin: held_back(admin, asked.now_ms),
            links={"TOPIC": asked.topic_link},
            empty="No transaction holds readers back.",
        ),
        _listed(asked, part),
    )
    return Page("Transactions", [held, listed], Filter(part), paging)


async def _listed(asked: Asked, part: str) -> tuple[Section, Paging | None]:
    def find(admin: Admin) -> tuple[Found, Paging]:
        named = [each for each in admin.list_transactions() if part.lower() in each.transactional_id.lower()]
        shown, paging = page_of(
            named, asked.number("page", 1), lambda page: asked.link("transactions", q=part or None, page=page)
        )
        return listed_transactions(shown), paging

    heading = "Transactional ids"
    try:
        found, paging = await asked.cluster.ask(find)
    except (KafkaError, Failure) as error:
        return failed_section("transactions", heading, error), None
    empty = f"No transactional id contains “{part}”." if part else "There is no transactional id yet."
    return section("transactions", heading, found, empty=empty), paging

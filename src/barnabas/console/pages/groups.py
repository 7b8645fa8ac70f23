"""The groups of a cluster, of every type: `barnabas group list` with members and lag, page by page."""

from __future__ import annotations

from barnabas.cli.failure import Failure
from barnabas.cli.group import listed_groups
from barnabas.cli.output import Found, Table
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.group_lags import group_lags
from barnabas.console.listing import page_of
from barnabas.console.page import Filter, Page, Paging, failed_section, section
from barnabas.protocol.errors import KafkaError


async def groups(asked: Asked) -> Page:
    """Make the page; `q` is a part of ids."""
    part = asked.query.get("q", "")

    def find(admin: Admin) -> tuple[Found, Paging]:
        named = [each for each in admin.list_groups() if part.lower() in each.group_id.lower()]
        shown, paging = page_of(
            named, asked.number("page", 1), lambda page: asked.link("groups", q=part or None, page=page)
        )
        lags = group_lags(admin, [each.group_id for each in shown])
        (listed,) = listed_groups(shown).tables
        rows = []
        for row, each in zip(listed.rows, shown, strict=True):
            lag = lags.get(each.group_id)
            rows.append((*row, *((None, None) if lag is None else (lag.members, lag.total_lag))))
        table = Table((*listed.columns, "MEMBERS", "TOTAL-LAG"), rows)
        return Found(table.objects(), [table]), paging

    chosen = Filter(part)
    try:
        found, paging = await asked.cluster.ask(find)
    except (KafkaError, Failure) as error:
        return Page("Groups", [failed_section("groups", "Groups", error)], chosen)
    empty = f"No group's id contains “{part}”." if part else "There is no group yet."
    listed = section("groups", "Groups", found, links={"GROUP": asked.group_link}, empty=empty)
    return Page("Groups", [listed], chosen, paging)

"""Quotas of users, client ids and addresses: `barnabas quota list`."""

from __future__ import annotations

from barnabas.cli.quota import listed_quotas
from barnabas.console.asked import Asked
from barnabas.console.page import Page, asked_section


async def quotas(asked: Asked) -> Page:
    """Make the page."""
    listed = await asked_section(asked.cluster, "quotas", "Quotas", listed_quotas, empty="There is no quota yet.")
    return Page("Quotas", [listed])

"""Users that log in by SCRAM: `barnabas user list`."""

from __future__ import annotations

from barnabas.cli.user import listed_users
from barnabas.console.asked import Asked
from barnabas.console.page import Page, asked_section


async def users(asked: Asked) -> Page:
    """Make the page."""
    listed = await asked_section(asked.cluster, "users", "Users of SCRAM", listed_users, empty="There is no user yet.")
    return Page("Users", [listed])

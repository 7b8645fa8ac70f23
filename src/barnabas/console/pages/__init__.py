"""The pages about one cluster, a module each, and their addresses.

A page's module has one coroutine, which gets an `Asked` and returns a `Page`. `PAGES` gives it its address under `/clusters/NAME/` and,
if it is reached from every page, its word in the menu.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from barnabas.console.asked import Asked
from barnabas.console.page import Page
from barnabas.console.pages.acls import acls
from barnabas.console.pages.cluster import cluster
from barnabas.console.pages.dead_letters import dead_letters
from barnabas.console.pages.group import group
from barnabas.console.pages.groups import groups
from barnabas.console.pages.messages import messages
from barnabas.console.pages.overview import overview
from barnabas.console.pages.quotas import quotas
from barnabas.console.pages.record import record
from barnabas.console.pages.spark import spark
from barnabas.console.pages.topic import topic
from barnabas.console.pages.topics import topics
from barnabas.console.pages.transactions import transactions
from barnabas.console.pages.users import users


class PageOfCluster(NamedTuple):
    """A page about a cluster.

    Attributes:
        path: under `/clusters/NAME/`; empty for the first page.
        menu: the word in the menu; None if only other pages lead to it.
    """

    path: str
    menu: str | None
    make: Callable[[Asked], Awaitable[Page]]


PAGES = (
    PageOfCluster("", "Overview", overview),
    PageOfCluster("topics", "Topics", topics),
    PageOfCluster("topic", None, topic),
    PageOfCluster("messages", "Messages", messages),
    PageOfCluster("record", None, record),
    PageOfCluster("groups", "Groups", groups),
    PageOfCluster("group", None, group),
    PageOfCluster("transactions", "Transactions", transactions),
    PageOfCluster("dead-letters", "Dead letters", dead_letters),
    PageOfCluster("spark", "Spark", spark),
    PageOfCluster("cluster", "Cluster", cluster),
    PageOfCluster("quotas", "Quotas", quotas),
    PageOfCluster("users", "Users", users),
    PageOfCluster("acls", "ACLs", acls),
)

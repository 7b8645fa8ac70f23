"""A request for a page: the cluster that the page is about, and the query of the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.links import Links
from barnabas.console.sampler import Sampler


class Asked(NamedTuple):
    """A request for a page about a cluster.

    Attributes:
        query: the parameters of the address; the last one of a name.
        now_ms: epoch milliseconds.
    """

    cluster: AskedCluster
    sampler: Sampler
    links: Links
    query: Mapping[str, str]
    now_ms: int

    def link(self, path: str = "", **query: object) -> str:
        """Return the address of another page about the same cluster."""
        return self.links.of_cluster(self.cluster.name, path, **query)

    def topic_link(self, name: str) -> str:
        """Return the address of a topic's page."""
        return self.link("topic", name=name)

    def group_link(self, group_id: str) -> str:
        """Return the address of a group's page."""
        return self.link("group", id=group_id)

    def number(self, name: str, default: int) -> int:
        """Return a parameter that is a natural number; the default if it is anything else."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default

"""The addresses of pages.

Names come from outside and go into the query, never into the path: a browser shortens a path with `..` in it, and a group may be named so.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlencode


class Links(NamedTuple):
    """Addresses under a base path, such as `/console`, or the empty one."""

    base_path: str

    def to(self, path: str = "", **query: object) -> str:
        """Return the address of a page; a parameter that is None is left out."""
        words = urlencode({name: value for name, value in query.items() if value is not None})
        return f"{self.base_path}/{path}{'?' if words else ''}{words}"

    def of_cluster(self, cluster: str, path: str = "", **query: object) -> str:
        """Return the address of a page about a cluster."""
        return self.to(f"clusters/{quote(cluster, safe='')}/{path}", **query)

"""Brokers as commands name them: by their ids, or all that serve."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cli.failure import Failure
from barnabas.client.admin import Admin, Node


def named_brokers(admin: Admin, ids: Iterable[int]) -> list[Node]:
    """Return the brokers of these ids, or all.

    Raises:
        Failure: one of them does not serve.
    """
    found = admin.describe_cluster()
    there = {node.id: node for node in found.brokers}
    wanted = list(dict.fromkeys(ids)) or sorted(there)
    for each in wanted:
        if each in [node.id for node in found.fenced]:
            raise Failure(f"broker {each} does not serve", "start it, then ask again")
        if each not in there:
            raise Failure(
                f"broker {each} is not part of the cluster now",
                f"its brokers are: {', '.join(map(str, sorted(there)))}",
            )
    return [there[each] for each in wanted]

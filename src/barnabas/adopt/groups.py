"""Groups of all types, and whether their members would find the same behaviour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.finding import Finding, blocks, differs, works
from barnabas.cli.wording import counted
from barnabas.group.group_config import KNOWN_ASSIGNORS
from barnabas.words.printable import printable

__all__ = ["findings_of_groups"]

_CLASSIC = "classic"
_TYPES = (_CLASSIC, "consumer", "share", "streams")


def findings_of_groups(state: ClusterState) -> Iterator[Finding]:
    """Yield the types of groups, and groups whose behaviour would change."""
    # A broker before Kafka 3.8 leaves the type empty.
    types = Counter(each.type.lower() or _CLASSIC for each in state.groups)
    for kind in _TYPES:
        if types[kind]:
            yield works("groups", f"{counted(types[kind], f'{kind} group')}: members and offsets stay")
    for each in state.groups:
        if each.type and each.type.lower() not in _TYPES:
            what = f"barnabas has no groups of the type {printable(each.type)}"
            yield blocks(f"group {printable(each.group_id)}", what, f"use one of {', '.join(_TYPES)}")
    for name, described in state.group_descriptions.items():
        if described.assignor and described.assignor not in KNOWN_ASSIGNORS:
            what = f"the broker's assignor {printable(described.assignor)} assigns its partitions; barnabas does not have it"
            remedy = f"let its members choose one of {', '.join(KNOWN_ASSIGNORS)} (group.remote.assignor)"
            yield blocks(f"group {printable(name)}", what, remedy)
    if len(state.groups) and any(each.state in ("PreparingRebalance", "CompletingRebalance") for each in state.groups):
        rebalancing = sum(each.state in ("PreparingRebalance", "CompletingRebalance") for each in state.groups)
        remedy = "`barnabas group list` shows them; wait until they are stable"
        yield differs("groups", f"{counted(rebalancing, 'group')} in a rebalance", remedy)

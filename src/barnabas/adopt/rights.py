"""Who may do what, and how much: access control lists, users, delegation tokens, quotas, metrics subscriptions.

All of them are in the metadata, which a barnabas node reads as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.finding import Finding, differs, works
from barnabas.cli.wording import counted, listed
from barnabas.security.principal import USER
from barnabas.words.printable import printable

__all__ = ["findings_of_rights"]

_ENTITIES = ("user", "client-id", "ip")
_CLUSTER = "cluster"


def findings_of_rights(state: ClusterState) -> Iterator[Finding]:
    """Yield what the cluster has of these, and what would mean something else."""
    if state.acls is not None:
        yield works(_CLUSTER, f"{counted(len(state.acls), 'access control list')}: they hold as they are")
        others = sorted({each.principal for each in state.acls if not each.principal.startswith(f"{USER}:")})
        if others:
            what = f"rules for principals that are no users: {printable(listed(others))}"
            yield differs(
                _CLUSTER,
                what,
                "a principal builder of your own makes them, and barnabas has none: check who needs them",
            )
    if state.users:
        yield works(_CLUSTER, f"{len(state.users)} passwords of SCRAM: their users log in as before")
    if state.tokens is not None:
        yield works(
            _CLUSTER, f"{counted(state.tokens, 'delegation token')}: valid as long as the secret stays the same"
        )
    if state.quotas:
        yield works(_CLUSTER, f"quotas of {len(state.quotas)} users, clients or addresses: they hold as they are")
        for quota in state.quotas:
            kinds = [kind for kind, _ in quota.entity if kind not in _ENTITIES]
            if kinds:
                what = f"a quota of {printable(', '.join(kinds))}, which barnabas does not have"
                yield differs(_CLUSTER, what, f"use quotas of {', '.join(_ENTITIES)}")
    if state.client_metrics:
        yield works(_CLUSTER, f"{counted(len(state.client_metrics), 'metrics subscription')}: clients push as before")

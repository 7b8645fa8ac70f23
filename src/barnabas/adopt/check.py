"""All checks of `barnabas adopt check`, in the order in which people read them."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.files import findings_of_files
from barnabas.adopt.finding import Finding, merged
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.groups import findings_of_groups
from barnabas.adopt.health import findings_of_health
from barnabas.adopt.rights import findings_of_rights
from barnabas.adopt.settings import findings_of_settings
from barnabas.adopt.transactions import findings_of_transactions
from barnabas.adopt.window import findings_of_versions

__all__ = ["checked"]


def checked(state: ClusterState, files: Sequence[GivenFile] = ()) -> list[Finding]:
    """Return all findings, the worst first."""
    return merged(
        [
            *findings_of_health(state),
            *findings_of_versions(state.features),
            *findings_of_files(files, state),
            *findings_of_settings(state, {each.node_id for each in files if each.node_id is not None}),
            *findings_of_groups(state),
            *findings_of_transactions(state),
            *findings_of_rights(state),
        ]
    )

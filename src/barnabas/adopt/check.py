"""All checks of `barnabas adopt check`, in the order in which people read them."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.files import findings_of_files
from barnabas.adopt.finding import Finding, merged
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.health import findings_of_health
from barnabas.adopt.window import findings_of_versions

__all__ = ["checked"]


def checked(state: ClusterState, files: Sequence[GivenFile] = ()) -> list[Finding]:
    """Return all findings, the worst first."""
    return merged(
        [
            *findings_of_health(state),
            *findings_of_versions(state.features),
            *findings_of_files(files, state),
        ]
    )

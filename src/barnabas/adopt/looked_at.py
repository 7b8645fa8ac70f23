"""The last line of `barnabas adopt check`: what was looked at, with counts, so that silence never passes for a good sign."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.given_file import GivenFile
from barnabas.cli.wording import counted

__all__ = ["counts", "looked_at"]


def counts(state: ClusterState, files: Sequence[GivenFile] = ()) -> dict[str, int]:
    """Return how many things of each kind were looked at, by the noun of one."""
    found = {
        "broker": len(state.features),
        "voter": len(state.voters),
        "file": len(files),
        "topic": len(state.topics),
        "partition": len(state.partitions),
        "directory": sum(len(each) for each in state.log_dirs.values()),
        "group": len(state.groups),
        "transactional id": len(state.transactions),
        "quota": len(state.quotas),
        "user of SCRAM": len(state.users),
        "access control list": len(state.acls or ()),
        "metrics subscription": len(state.client_metrics),
    }
    settings = [*state.broker_settings.values(), *state.topic_settings.values(), *state.group_settings.values()]
    in_files = sum(each.settings for each in files)
    segments = sum(directory.segments for each in files for directory in each.directories)
    return {**found, "segment": segments, "setting": in_files + sum(len(each) for each in settings)}


_PLURALS = {"directory": "directories", "user of SCRAM": "users of SCRAM"}


def looked_at(found: dict[str, int]) -> str:
    """Return the counts as a sentence."""
    parts = [
        f"{count} {_PLURALS[noun]}" if noun in _PLURALS and count != 1 else counted(count, noun)
        for noun, count in found.items()
    ]
    return f"looked at {', '.join(parts)}"

"""May a node of this cluster be Apache Kafka again? Only if that release knows every level of a feature that the cluster has finalized.

A node of Apache Kafka that still runs says what it knows. When none is left, only the name of the release says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.adopt.observation import Seen
from barnabas.client.features import METADATA_VERSION, BrokerFeatures
from barnabas.client.program import Program
from barnabas.metadata.metadata_version import (
    FEATURES,
    KRAFT_VERSION,
    FeatureRange,
    default_level,
    release_level,
)
from barnabas.protocol.metadata_versions import NAMES

__all__ = ["obstacles_of_way_back"]

_KRAFT = "kraft.version"
_ELR = "eligible.leader.replicas.version"
_ELR_SINCE = release_level("4.0") or 0
_RELEASES = ", ".join(dict.fromkeys(name.partition("-")[0] for level, name in NAMES.items() if level >= _ELR_SINCE))


def obstacles_of_way_back(seen: Seen, release: str | None) -> Iterator[str]:
    """Yield what the cluster has finalized and Apache Kafka does not know.

    Args:
        release: of Apache Kafka, such as `4.3`; None if it was not given.
    """
    latest = max(seen.features.values(), key=lambda each: each.finalized_epoch, default=None)
    if latest is None:
        yield "the levels of its features could not be read"
        return
    kafka = [seen.features[each] for each in seen.running(Program.KAFKA) if each in seen.features]
    if kafka:
        known: Mapping[str, tuple[int, int]] = kafka[0].supported
        who = "the Apache Kafka that runs in this cluster"
    elif release is None:
        yield "no broker of Apache Kafka runs that could say which levels it knows: name its release, such as --kafka-release 4.3"
        return
    else:
        level = release_level(release)
        if level is None:
            yield f"Apache Kafka {release} is not a release that barnabas knows; it knows {_RELEASES}"
            return
        known = _known_by(level)
        who = f"Apache Kafka {release}"
    yield from _unknown(latest, known, who)


def _known_by(level: int) -> dict[str, tuple[int, int]]:
    known = {name: (0, default_level(name, level)) for name in FEATURES}
    if level >= _ELR_SINCE:
        known[_ELR] = (0, FEATURES[_ELR].max)
    return {**known, METADATA_VERSION: (0, level), _KRAFT: _pair(KRAFT_VERSION)}


def _pair(levels: FeatureRange) -> tuple[int, int]:
    return levels.min, levels.max


def _unknown(latest: BrokerFeatures, known: Mapping[str, tuple[int, int]], who: str) -> Iterator[str]:
    for name, level in sorted(latest.finalized.items()):
        lowest, highest = known.get(name, (0, 0))
        if not lowest <= level <= highest:
            shown = NAMES.get(level, str(level)) if name == METADATA_VERSION else str(level)
            yield f"{name} is finalized at {shown}, which {who} does not know: that cannot be undone by a change of programs"

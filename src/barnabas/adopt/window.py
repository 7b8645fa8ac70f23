"""The window of support: which clusters of Apache Kafka may become barnabas, by `metadata.version` and the other features.

    metadata.version   LOWEST                      LOWEST_BESIDE                      HIGHEST
                       a node changes in place ───►── and a new node joins too ───────►

- Below LOWEST, and above HIGHEST, a barnabas node does not register: it cannot read, or not write, the records of that version.
- `barnabas storage format` makes no directory below LOWEST_BESIDE, so that no new node can join there.
- OLDEST_BROKERS is the `metadata.version` up to which the oldest brokers that are supported can go: those of Apache Kafka 4.0.
- A feature with a finalized level above ours, or one that we do not know, keeps a barnabas node out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.adopt.finding import Finding, blocks, differs, works
from barnabas.client.features import METADATA_VERSION, BrokerFeatures
from barnabas.metadata.metadata_version import (
    LATEST_PRODUCTION,
    OLDEST_FORMAT,
    release_level,
    supported_features,
)
from barnabas.protocol.metadata_versions import MINIMUM, NAMES, name_of
from barnabas.words.printable import printable

__all__ = ["HIGHEST", "LOWEST", "LOWEST_BESIDE", "OLDEST_BROKERS", "Row", "findings_of_versions", "window"]

LOWEST = MINIMUM
LOWEST_BESIDE = OLDEST_FORMAT
HIGHEST = LATEST_PRODUCTION
OLDEST_BROKERS = release_level("4.0") or LOWEST_BESIDE
_CLUSTER = "cluster"
_RAISE = "kafka-features.sh upgrade --release-version"


class Row(NamedTuple):
    """A feature in the window: the lowest and highest level, as people write them."""

    feature: str
    lowest: str
    highest: str


def window() -> list[Row]:
    """Return the window of support, a row for each feature, metadata.version first."""
    others = [
        Row(name, str(levels.min), str(levels.max))
        for name, levels in supported_features().items()
        if name != METADATA_VERSION
    ]
    return [Row(METADATA_VERSION, NAMES[LOWEST], NAMES[HIGHEST]), *others]


def findings_of_versions(features: Mapping[int, BrokerFeatures]) -> Iterator[Finding]:
    """Yield what versions and features mean; `features` has what each broker answered."""
    if not features:
        return
    for broker, found in features.items():
        yield from _of_broker(broker, found)
    # The broker that has read most of the metadata log knows the latest levels.
    latest = max(features.values(), key=lambda each: each.finalized_epoch)
    yield from _of_metadata_version(latest.finalized.get(METADATA_VERSION, 0))
    ours = supported_features()
    for name, level in sorted(latest.finalized.items()):
        if name == METADATA_VERSION or not level:
            continue
        if name not in ours:
            what = f"the feature {printable(name)} has level {level}, and barnabas does not know it"
            yield blocks(
                _CLUSTER, what, f"`kafka-features.sh downgrade --feature {printable(name)}=0`, if the cluster may"
            )
        elif not ours[name].min <= level <= ours[name].max:
            what = f"{name} has level {level}; barnabas supports {ours[name].min} to {ours[name].max}"
            yield blocks(
                _CLUSTER, what, f"`kafka-features.sh downgrade --feature {name}={ours[name].max}`, if the cluster may"
            )
        else:
            yield works(_CLUSTER, f"{name} has level {level}")


def _of_broker(broker: int, found: BrokerFeatures) -> Iterator[Finding]:
    where = f"broker {broker}"
    if METADATA_VERSION not in found.supported:
        yield blocks(
            where, "it has no metadata.version: it is older than KRaft", "update it to Apache Kafka 4.0 or newer first"
        )
        return
    highest = found.supported[METADATA_VERSION][1]
    name = name_of(highest)
    if highest < OLDEST_BROKERS:
        what = f"it supports metadata.version up to {name}: it is older than Apache Kafka 4.0"
        yield blocks(where, what, "update it to Apache Kafka 4.0 or newer first")
    elif highest > HIGHEST:
        what = f"it supports metadata.version up to {name}, which is newer than barnabas knows ({NAMES[HIGHEST]})"
        yield differs(where, what, f"do not raise metadata.version above {NAMES[HIGHEST]}")
    else:
        yield works(where, f"it supports metadata.version up to {name}")


def _of_metadata_version(level: int) -> Iterator[Finding]:
    supported = f"barnabas supports {NAMES[LOWEST]} to {NAMES[HIGHEST]}"
    if level <= 0:
        yield blocks(
            _CLUSTER,
            "no metadata.version is finalized: the cluster keeps its metadata in ZooKeeper",
            "migrate the cluster to KRaft with Apache Kafka 3.9, then update it to 4.0 or newer",
        )
    elif level < LOWEST:
        yield blocks(_CLUSTER, f"metadata.version has level {level}; {supported}", f"`{_RAISE} {NAMES[LOWEST_BESIDE]}`")
    elif level > HIGHEST:
        yield blocks(
            _CLUSTER,
            f"metadata.version has level {level}; {supported}",
            f"`kafka-features.sh downgrade --release-version {NAMES[HIGHEST]}`, if the cluster may; else a newer barnabas",
        )
    elif level < LOWEST_BESIDE:
        yield differs(
            _CLUSTER,
            f"metadata.version is {NAMES[level]}: nodes can change in place, but no new directory can be formatted for it",
            f"change nodes in place, or `{_RAISE} {NAMES[LOWEST_BESIDE]}`",
        )
    else:
        yield works(_CLUSTER, f"metadata.version is {NAMES[level]}; {supported}")

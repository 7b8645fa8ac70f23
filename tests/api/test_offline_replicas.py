"""Replicas are offline on a silent broker, and in a directory that its broker does not offer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api.offline_replicas import OfflineReplicas
from barnabas.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED
from barnabas.metadata.partition_registration import PartitionRegistration

A, B, C, GONE = (bytes([number]) * 16 for number in (11, 12, 13, 14))


def offline(live: set[int], directories: tuple[bytes, ...]) -> list[int]:
    brokers = {1: SimpleNamespace(directories=(A, B)), 2: SimpleNamespace(directories=(C,))}
    image: Any = SimpleNamespace(cluster=SimpleNamespace(brokers=brokers))
    found = OfflineReplicas(image, live)
    assert repr(found) == "<OfflineReplicas directories=5>"
    return found.of(PartitionRegistration((1, 2, 3), (1,), 1, 0, 0, directories))


@pytest.mark.parametrize(
    ("live", "directories", "expected"),
    [
        ({1, 2, 3}, (A, C, UNASSIGNED), []),
        ({1, 2}, (B, C, MIGRATING), [3]),
        ({1, 2, 3}, (GONE, C, UNASSIGNED), [1]),
        ({1, 2}, (GONE, LOST, UNASSIGNED), [1, 2, 3]),
        ({2}, (), [1, 3]),
    ],
)
def test_which_are_offline(live: set[int], directories: tuple[bytes, ...], expected: list[int]) -> None:
    assert offline(live, directories) == expected

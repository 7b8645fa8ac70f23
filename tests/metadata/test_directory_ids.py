"""The directory of a replica that a broker is to get."""

from __future__ import annotations

import pytest

from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.directory_ids import MIGRATING, UNASSIGNED, default_directory

A, B = b"a" * 16, b"b" * 16


@pytest.mark.parametrize(
    ("directories", "expected"), [((), MIGRATING), ((A,), A), ((A, B), UNASSIGNED)], ids=["unnamed", "one", "several"]
)
def test_a_replica_goes_to_the_only_directory(directories: tuple[bytes, ...], expected: bytes) -> None:
    assert default_directory(BrokerRegistration(1, 1, A, (), {}, None, False, False, directories)) == expected
    assert default_directory(None) == UNASSIGNED

"""The topic id of a directory."""

from __future__ import annotations

import pytest

from barnabas.log import partition_metadata
from barnabas.simulation.disk import SimDisk

TOPIC_ID = bytes(range(16))
TEXT = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


def test_golden_file() -> None:
    assert partition_metadata.encode(TOPIC_ID) == TEXT  # type: ignore[arg-type]
    assert partition_metadata.decode(TEXT) == TOPIC_ID
    assert partition_metadata.decode(TEXT + b"\n") == TOPIC_ID


def test_cut_file_says_nothing() -> None:
    for size in range(len(TEXT)):
        assert partition_metadata.decode(TEXT[:size]) is None


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"nonsense"])
def test_nonsense_says_nothing(data: bytes) -> None:
    assert partition_metadata.decode(data) is None


def test_missing_file_says_nothing() -> None:
    assert partition_metadata.read(SimDisk(), "/t/partition.metadata") is None

"""A directory that is offline has replicas, and no logs."""

from __future__ import annotations

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.offline_directory import OfflineDirectory
from barnabas.protocol.primitives import Uuid


def test_it_has_replicas_and_no_logs() -> None:
    directory = OfflineDirectory("/c", "Input/output error", [("t", 0), ("u", 1)], Uuid(b"c" * 16))
    assert directory.knows_its_replicas
    assert directory.failure.is_offline
    directory.delete("u", 1)
    directory.delete("u", 1)
    directory.add(("v", 0))
    assert (("t", 0) in directory, directory.names(), list(directory)) == (True, [("t", 0), ("v", 0)], [])
    assert repr(directory) == "<OfflineDirectory /c replicas=2 Input/output error>"


def test_every_log_that_is_asked_for_is_an_error() -> None:
    directory = OfflineDirectory("/c", "Input/output error", None, None)
    assert not directory.knows_its_replicas
    for ask in (lambda: directory.get("t", 0), lambda: directory.get_or_create("t", 0, None, LogConfig())):
        with pytest.raises(KafkaStorageError, match="the data directory /c is offline: Input/output error"):
            ask()
    with pytest.raises(OSError, match="Input/output"):
        directory.disk_usage()

"""A broker's part of a node: its first answers, what it finds in its directory, its stop."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FindCoordinatorRequest
from tests.api.served_node import Serving
from tests.node.asking import commit, fetched, produce


def test_a_broker_stops_although_the_controller_does_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Serving(tmp_path)
    node.create_topic("t")
    node.server.controller.close()
    node.close()
    assert "stops without handing over its partitions: This node is not the active controller" in caplog.text
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_log_of_a_topic_that_is_gone_is_set_aside_at_the_start(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    node.create_topic("t")
    produce(node, "t", b"one")
    node.close()
    (tmp_path / "data" / "ghost-0").mkdir()
    (tmp_path / "data" / "ghost-0" / "00000000000000000000.log").write_bytes(b"")
    with closing(Serving(tmp_path)) as again:
        assert not (tmp_path / "data" / "ghost-0").exists()
        assert list((tmp_path / "data").glob("ghost-0.*-stray"))
        assert fetched(again, "t")


def test_a_single_node_works_with_kafkas_internal_topic_defaults(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    with closing(node):
        assert node.node.config.offsets_topic_replication_factor == 3
        (found,) = node.ask(FindCoordinatorRequest(coordinator_keys=["g"])).coordinators
        assert (found.error_code, found.node_id, found.host) == (ErrorCode.NONE, 1, "dialled.example")
        assert commit(node, "g", 1) in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_request_is_answered_the_same_on_a_second_connection(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    with closing(node):
        body = struct.pack(">i", -1)
        assert node.send(3, 1, body) == node.send(3, 1, body)

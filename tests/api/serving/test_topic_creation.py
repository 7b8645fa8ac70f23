"""How many replicas a topic gets that a broker creates by itself: one on a node alone, in a cluster as many as the settings want."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.metadata_version import supported_features
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    UnregisterBrokerRequest,
)
from tests.api.served_node import Serving


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    node = Serving(tmp_path, default_replication_factor="2", offsets_topic_num_partitions="1")
    yield node
    node.close()


def join_cluster(serving: Serving) -> None:
    """Let the node know that others belong to its cluster."""
    serving.node.config.__dict__["is_alone"] = False


def add_broker(serving: Serving, broker_id: int) -> None:
    """Let another broker register, and be unfenced."""

    async def added() -> None:
        made, controller = BrokerRegistrationRequest, serving.node.quorum.controller
        request = made(
            broker_id=broker_id,
            cluster_id=serving.node.cluster_id,
            listeners=[made.Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092)],
            features=[
                made.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in supported_features().items()
            ],
            log_dirs=[bytes([broker_id] * 16)],
        )
        epoch = (await controller.handle(made.API_KEY, made.MAX_VERSION, request)).broker_epoch
        beat = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=controller.image.provenance.offset
        )
        assert not (await controller.handle(beat.API_KEY, beat.MAX_VERSION, beat)).is_fenced

    serving.loop.run_until_complete(added())


def remove_brokers(serving: Serving, *broker_ids: int) -> None:
    """Let the others leave: the node does not wait for them when it stops."""
    controller = serving.node.quorum.controller
    for broker_id in broker_ids:
        request = UnregisterBrokerRequest(broker_id=broker_id)
        serving.loop.run_until_complete(controller.handle(request.API_KEY, request.MAX_VERSION, request))


def find_coordinator(serving: Serving) -> ErrorCode:
    answer = serving.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    return ErrorCode(answer.coordinators[0].error_code)


def create(serving: Serving, name: str) -> ErrorCode:
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    return ErrorCode(serving.ask(asked).topics[0].error_code)


def replicas(serving: Serving, name: str) -> Any:
    topic = serving.server.services.image().topics.by_name.get(name)
    return None if topic is None else len(topic.partitions[0].replicas)


def test_on_a_node_alone_one_replica_is_enough(serving: Serving) -> None:
    assert find_coordinator(serving) is ErrorCode.NONE
    create(serving, "t")
    assert (replicas(serving, "__consumer_offsets"), replicas(serving, "t")) == (1, 1)


def test_in_a_cluster_a_topic_waits_for_enough_brokers(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    join_cluster(serving)
    began = serving.loop.time()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert find_coordinator(serving) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert serving.loop.time() - began < 1.0, "the client waits, and not the broker"
    assert create(serving, "t") is ErrorCode.INVALID_REPLICATION_FACTOR
    assert (replicas(serving, "__consumer_offsets"), replicas(serving, "t")) == (None, None)
    (line,) = [line for line in caplog.messages if "internal topic" in line]
    assert line.startswith("Cannot create the internal topic __consumer_offsets yet: ")
    assert "only 1 broker(s) are registered" in line
    add_broker(serving, 2)
    create(serving, "t")
    assert find_coordinator(serving) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (replicas(serving, "__consumer_offsets"), replicas(serving, "t")) == (None, 2)
    add_broker(serving, 3)
    find_coordinator(serving)
    assert replicas(serving, "__consumer_offsets") == 3
    remove_brokers(serving, 2, 3)


def test_a_node_that_names_no_other_is_not_alone_once_another_has_registered(serving: Serving) -> None:
    add_broker(serving, 2)
    create(serving, "t")
    assert find_coordinator(serving) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (replicas(serving, "__consumer_offsets"), replicas(serving, "t")) == (None, 2)
    remove_brokers(serving, 2)
    assert find_coordinator(serving) is ErrorCode.NONE
    assert replicas(serving, "__consumer_offsets") == 1

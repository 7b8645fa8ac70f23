"""Traps of the protocol that no single API's module tests: what is not served yet must not look as if it were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
    ShareGroupHeartbeatRequest,
)
from barnabas.records.builder import build_batch
from tests.api.serving import Serving

EARLY_ACCESS = (ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder: Path = tmp_path_factory.mktemp("traps")
    node = Serving(folder)
    node.create_topic("t")
    yield node
    node.close()


def advertised(serving: Serving) -> dict[int, tuple[int, int]]:
    request = ApiVersionsRequest(client_software_name="trap", client_software_version="1")
    return {api.api_key: (api.min_version, api.max_version) for api in serving.ask(request, 4).api_keys}


def produce(**batch: Any) -> ProduceRequest:
    records = bytes(build_batch([(1_700_000_000_000, b"key", b"value", [])], **batch))
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def test_trap_12_a_group_protocol_is_advertised_only_with_a_coordinator_for_it(serving: Serving) -> None:
    if ApiKey.CONSUMER_GROUP_HEARTBEAT in advertised(serving):
        pytest.skip("served")
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1000)
    body = serving.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request.encode(1))
    assert body is not None, "answered, not dropped"


def test_trap_15_a_transactional_batch_without_a_transaction_is_refused(serving: Serving) -> None:
    answer = serving.ask(produce(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), 9)
    assert answer.responses[0].partition_responses[0].error_code != ErrorCode.NONE


def test_trap_15_transactions_are_advertised_whole_or_not_at_all(serving: Serving) -> None:
    transactional = {
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    }
    offered = transactional & advertised(serving).keys()
    assert offered in (set(), transactional)
    if not offered:
        begun = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        assert serving.ask(begun, 4).error_code != ErrorCode.NONE
        wanted = FindCoordinatorRequest(key="tx", key_type=1)
        assert serving.ask(wanted, 2).error_code != ErrorCode.NONE


def test_trap_17_version_0_of_the_share_apis_is_not_served(serving: Serving) -> None:
    ranges = advertised(serving)
    assert all(ranges[key][0] >= 1 for key in EARLY_ACCESS if key in ranges)
    assert ShareGroupHeartbeatRequest.MIN_VERSION == 1


def test_trap_19_nobody_is_told_to_wait_while_there_are_no_quotas(serving: Serving) -> None:
    listed = ListOffsetsRequest(replica_id=-1, topics=[])
    fetched = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[])
    answers = [
        serving.ask(request, version)
        for request, versions in (
            (produce(), (3, 9, 12)),
            (fetched, (4, 12, 16)),
            (listed, (2, 11)),
            (MetadataRequest(topics=[]), (3, 13)),
        )
        for version in versions
    ]
    assert [answer.throttle_time_ms for answer in answers] == [0] * len(answers)

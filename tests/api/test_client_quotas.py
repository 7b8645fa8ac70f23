"""Client quotas over the wire: altering and describing them, and the responses to a client over its quota."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.protocol.api_keys import api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeQuorumRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from tests.api.served_node import Serving
from tests.replication.hosting import batch

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Entity = dict[str, str | None]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    node = Serving(tmp_path)
    node.monotonic_ns = 0  # type: ignore[attr-defined]
    set_clock(node, lambda: node.monotonic_ns)  # type: ignore[attr-defined]
    yield node
    node.close()


def set_clock(node: Serving, monotonic_ns: Callable[[], int]) -> None:
    node.server.services.monotonic_ns = monotonic_ns
    node.dispatcher = Dispatcher(node.server.services)


def entry(entity: Entity, **limits: float | None) -> AlterClientQuotasRequest.EntryData:
    return AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type=k, entity_name=v) for k, v in entity.items()],
        ops=[
            AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in limits.items()
        ],
    )


def alter(serving: Serving, entity: Entity, **limits: float | None) -> tuple[int, str | None]:
    (answer,) = serving.ask(AlterClientQuotasRequest(entries=[entry(entity, **limits)])).entries
    assert {part.entity_type: part.entity_name for part in answer.entity} == entity
    return answer.error_code, answer.error_message


def describe(serving: Serving, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    component = DescribeClientQuotasRequest.ComponentData
    request = DescribeClientQuotasRequest(
        components=[component(entity_type=kind, match_type=how, match=name) for kind, how, name in components],
        strict=strict,
    )
    return serving.ask(request)


def described(serving: Serving, *components: tuple[str, int, str | None], strict: bool = False) -> list[Entity]:
    entries = describe(serving, *components, strict=strict).entries
    return [{part.entity_type: part.entity_name for part in found.entity} for found in entries]


def produce(serving: Serving, size: int, *, acks: int = 1, version: int = 9) -> Any:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(bytes(size), timestamp=serving.now_ms))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[data])],
    )
    if acks == 0:
        return serving.send(0, version, request.encode(version))
    return serving.ask(request, version)


def fetch(
    serving: Serving, offset: int = 0, *, session_id: int = 0, epoch: int = -1, max_bytes: int = 2**31 - 1
) -> Any:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchRequest.FetchTopic(topic="t", partitions=[partition])] if epoch <= 0 else []
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, session_id=session_id, session_epoch=epoch, topics=topics
    )
    return serving.ask(request, 12)


def test_altering_describing_and_removing(serving: Serving) -> None:
    assert alter(serving, {"user": "a", "client-id": "b"}, producer_byte_rate=1000.0, request_percentage=12.5) == (
        0,
        None,
    )
    assert alter(serving, {"user": None}, consumer_byte_rate=2000.0) == (0, None)
    assert alter(serving, {"ip": "10.0.0.1"}, connection_creation_rate=5.0) == (0, None)
    (first, _, _) = describe(serving).entries
    assert {value.key: value.value for value in first.values} == {
        "producer_byte_rate": 1000.0,
        "request_percentage": 12.5,
    }
    assert described(serving, ("user", SPECIFIED, None)) == [{"client-id": "b", "user": "a"}, {"user": None}]
    assert described(serving, ("user", SPECIFIED, None), strict=True) == [{"user": None}]
    assert described(serving, ("user", DEFAULT, None)) == [{"user": None}]
    assert described(serving, ("client-id", EXACT, "b")) == [{"client-id": "b", "user": "a"}]
    assert described(serving, ("ip", EXACT, "10.0.0.2")) == []
    assert alter(serving, {"user": None}, consumer_byte_rate=None) == (0, None)
    assert described(serving, ("user", DEFAULT, None)) == []


@pytest.mark.parametrize(
    ("entity", "limits", "message"),
    [
        ({"user": "a"}, {"nonsense": 1.0}, "Invalid configuration key nonsense"),
        ({"user": "a"}, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
        ({"user": "a"}, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
        ({"user": "a"}, {"producer_byte_rate": 1e19}, "Proposed value for producer_byte_rate is too large for a LONG."),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
        ({"planet": "x"}, {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: planet"),
        ({}, {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
        ({"ip": "nowhere"}, {"connection_creation_rate": 1.0}, "nowhere is not a valid IP or resolvable host."),
        ({"ip": None}, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
        (
            {"ip": None},
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (
            {"ip": None, "user": "a"},
            {"connection_creation_rate": 1.0},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
    ],
)
def test_an_invalid_quota_is_rejected_with_the_reason(
    serving: Serving, entity: Entity, limits: dict[str, float], message: str
) -> None:
    assert alter(serving, entity, **limits) == (ErrorCode.INVALID_REQUEST, message)
    assert described(serving) == []


def test_an_entity_named_twice_keeps_the_first_change(serving: Serving) -> None:
    request = AlterClientQuotasRequest(
        entries=[entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "a"}, producer_byte_rate=2.0)]
    )
    (answer,) = serving.ask(request).entries
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=a})"
    ((value,),) = [found.values for found in describe(serving).entries]
    assert value.value == 1.0


def test_of_a_type_named_twice_the_last_name_counts(serving: Serving) -> None:
    twice = entry({"user": "a"}, producer_byte_rate=1.0)
    twice.entity.append(AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="b"))
    (answer,) = serving.ask(AlterClientQuotasRequest(entries=[twice])).entries
    assert [(part.entity_type, part.entity_name) for part in answer.entity] == [("user", "b")]
    assert described(serving) == [{"user": "b"}]


def test_validating_changes_nothing(serving: Serving) -> None:
    request = AlterClientQuotasRequest(entries=[entry({"user": "a"}, producer_byte_rate=1.0)], validate_only=True)
    assert serving.ask(request).entries[0].error_code == 0
    assert described(serving) == []
    assert not serving.server.quotas.is_enabled


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, None), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, None), ("ip", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_bad_filter_has_no_entries(serving: Serving, components: list[Any], code: ErrorCode) -> None:
    answer = describe(serving, *components)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message


def test_a_producer_over_its_quota_gets_its_response_with_a_throttle_time(serving: Serving) -> None:
    serving.create_topic("t")
    alter(serving, {"client-id": "test"}, producer_byte_rate=1000.0)
    assert produce(serving, 5000).throttle_time_ms == 0
    response = produce(serving, 10_000)
    assert response.responses[0].partition_responses[0].error_code == 0
    size = sum(sample.value for sample in serving.server.quotas.produce.sensors["", "test"].meter._samples)
    assert 15_000 < size < 15_400
    # All in one moment: the rate is taken over ten whole windows.
    assert response.throttle_time_ms == round((size / 10 - 1000) / 1000 * 10_000)
    serving.now_ms += 60_000
    assert produce(serving, 10).throttle_time_ms == 0


def test_every_version_of_a_response_has_the_throttle_time(serving: Serving) -> None:
    serving.create_topic("t")
    alter(serving, {"client-id": None}, producer_byte_rate=10.0)
    for version in (3, 5, 8, 12):
        assert produce(serving, 1000, version=version).throttle_time_ms > 0


def test_without_quotas_nobody_is_throttled(serving: Serving) -> None:
    serving.create_topic("t")
    answers = [produce(serving, 100, version=version) for version in (3, 9, 12)]
    for request, versions in (
        (FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), (4, 12, 16)),
        (ListOffsetsRequest(replica_id=-1, topics=[]), (2, 11)),
        (MetadataRequest(topics=[]), (3, 13)),
    ):
        answers += [serving.ask(request, version) for version in versions]
    assert [answer.throttle_time_ms for answer in answers] == [0] * 10


def test_with_acks_0_the_bytes_count_and_the_time_does_not(serving: Serving) -> None:
    serving.create_topic("t")
    alter(serving, {"client-id": "test"}, producer_byte_rate=100.0, request_percentage=1.0)
    before = dict(serving.server.quotas.request.sensors)
    assert produce(serving, 5000, acks=0) is None
    assert serving.server.quotas.request.sensors == before
    assert serving.server.quotas.produce.sensors["", "test"].throttled_ms > 0


def test_a_fetch_over_quota_is_empty_and_costs_nothing(serving: Serving) -> None:
    serving.create_topic("t")
    for _ in range(3):
        produce(serving, 4000)
    alter(serving, {"client-id": "test"}, consumer_byte_rate=1000.0)
    first = fetch(serving, max_bytes=5000)
    assert (first.throttle_time_ms, len(bytes(first.responses[0].partitions[0].records)) > 4000) == (0, True)
    second = fetch(serving, 1, max_bytes=5000)
    assert second.throttle_time_ms == 0
    third = fetch(serving, 2, max_bytes=5000)
    assert third.responses == []
    size = 4 + 3 * 4000
    assert 0 < third.throttle_time_ms < (size + 400 - 10_000)
    again = fetch(serving, 2, max_bytes=5000)
    assert again.throttle_time_ms == third.throttle_time_ms  # what was not delivered does not count
    serving.now_ms += 11_000
    assert fetch(serving, 2, max_bytes=5000).responses


def test_a_fetch_is_never_larger_than_the_window_allows(serving: Serving) -> None:
    serving.create_topic("t")
    for _ in range(10):
        produce(serving, 1000)
    alter(serving, {"client-id": "test"}, consumer_byte_rate=400.0)
    records = bytes(fetch(serving).responses[0].partitions[0].records)
    assert len(records) <= 4000


def test_a_session_over_quota_continues_and_gets_its_records_later(serving: Serving) -> None:
    serving.create_topic("t")
    produce(serving, 4000)
    opened = fetch(serving, epoch=0)
    alter(serving, {"client-id": "test"}, consumer_byte_rate=100.0)
    quotas = serving.server.quotas.fetch
    quotas.record("ANONYMOUS", "test", 2000, serving.now_ms)
    throttled = fetch(serving, session_id=opened.session_id, epoch=1)
    assert throttled.throttle_time_ms > 0
    assert (throttled.session_id, throttled.responses, throttled.error_code) == (opened.session_id, [], 0)
    alter(serving, {"client-id": "test"}, consumer_byte_rate=None)
    resumed = fetch(serving, session_id=opened.session_id, epoch=2)
    assert bytes(resumed.responses[0].partitions[0].records)


def test_the_throttle_time_of_a_controller_on_another_node_throttles_the_client(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has counted the partitions, and this broker's own bucket is full (KIP-599)."""
    alter(serving, {"client-id": "test"}, controller_mutation_rate=1.0)

    def answered_elsewhere(*_: Any, **__: Any) -> asyncio.Future[Any]:
        future = serving.loop.create_future()
        future.set_result(CreateTopicsResponse(throttle_time_ms=700))
        return future

    monkeypatch.setattr(serving.server.services.controller, "handle", answered_elsewhere)
    request = CreateTopicsRequest(topics=[]).encode(7)
    frame = bytes.fromhex("0013 0007 0000002a 0004") + b"test\0" + request
    context, output = serving.dispatcher.dispatch(serving.connection, memoryview(frame))
    assert context.accounting is not None
    assert context.accounting.throttle_ms == 700
    assert isinstance(output, list)
    assert CreateTopicsResponse.decode(bytes(output[0])[9:], 7).throttle_time_ms == 700


def test_every_request_is_charged_with_time_and_throttled_for_a_window_at_most(serving: Serving) -> None:
    alter(serving, {"client-id": "test"}, request_percentage=1.0)
    step = iter([0, 2_000_000_000])
    set_clock(serving, lambda: next(step, 4_000_000_000))
    assert serving.ask(MetadataRequest(topics=[])).throttle_time_ms == 1000


def test_the_mutation_quota_is_strict_from_its_first_version(serving: Serving) -> None:
    # A bucket of eleven seconds: 110 partitions.
    alter(serving, {"client-id": "test"}, controller_mutation_rate=10.0)

    def create(name: str, partitions: int, version: int) -> tuple[int, int]:
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = serving.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), version)
        return answer.topics[0].error_code, answer.throttle_time_ms

    assert create("a", 120, 7) == (0, 0)
    assert create("b", 1, 7) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1000)
    assert create("c", 1, 5) == (0, 1100)
    refused = serving.ask(DeleteTopicsRequest(topic_names=["c"], timeout_ms=30_000), 5)
    assert (refused.responses[0].error_code, refused.throttle_time_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1100)
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="c", count=2, assignments=None)], timeout_ms=1000
    )
    assert serving.ask(grow, 3).results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert serving.ask(grow, 2).results[0].error_code == 0
    serving.now_ms += 1200
    assert serving.ask(DeleteTopicsRequest(topic_names=["c"], timeout_ms=30_000), 5).responses[0].error_code == 0


def test_a_topic_created_by_a_metadata_request_counts_too(serving: Serving) -> None:
    alter(serving, {"client-id": "test"}, controller_mutation_rate=1.0)
    for number in range(11):
        topics = [MetadataRequest.MetadataRequestTopic(name=f"t{number}")]
        assert serving.ask(MetadataRequest(topics=topics), 9).throttle_time_ms == 0
    topics = [MetadataRequest.MetadataRequestTopic(name="one-more")]
    answer = serving.ask(MetadataRequest(topics=topics), 9)
    assert answer.throttle_time_ms == 1000
    assert "one-more" in serving.server.services.image().topics.by_name


def test_quotas_survive_a_restart_and_reset_removes_them(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    alter(node, {"user": None, "client-id": None}, producer_byte_rate=7.0)
    node.close()
    node = Serving(tmp_path)
    assert node.server.quotas.produce.limit("anyone", "at-all") == 7.0
    node.loop.run_until_complete(node.server.reset())
    assert not node.server.quotas.is_enabled
    assert described(node) == []
    node.close()


@pytest.mark.parametrize("key", sorted(APIS))
def test_every_response_encodes_with_a_throttle_time(key: int) -> None:
    description = api(key)
    for version in range(APIS[key].min_served, APIS[key].max_version + 1):
        plain, throttled = description.response_class(), description.response_class()
        if hasattr(throttled, "throttle_time_ms"):
            throttled.throttle_time_ms = 7
        assert len(throttled.encode(version)) == len(plain.encode(version))


def test_a_response_without_the_field_is_sent_all_the_same(serving: Serving) -> None:
    alter(serving, {"client-id": "test"}, request_percentage=1.0)
    step = iter([0, 2_000_000_000])
    set_clock(serving, lambda: next(step, 4_000_000_000))
    topic = DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
    )
    assert serving.ask(DescribeQuorumRequest(topics=[topic])).topics[0].partitions[0].leader_id == 1
    assert serving.server.quotas.request.sensors["", "test"].throttled_ms == 1000


@pytest.mark.parametrize("limit", [float("nan"), float("inf")])
def test_a_limit_that_is_not_a_number_throttles_nobody(serving: Serving, limit: float) -> None:
    # Kafka takes these too, where fractions are allowed; the broker must live with them.
    serving.create_topic("t")
    keys = ["request_percentage", "controller_mutation_rate"]
    if limit != limit:
        keys += ["producer_byte_rate", "consumer_byte_rate"]
    assert alter(serving, {"client-id": "test"}, **dict.fromkeys(keys, limit)) == (0, None)
    assert produce(serving, 1000).throttle_time_ms == 0
    assert fetch(serving).throttle_time_ms == 0
    serving.create_topic("u", 100)
    assert serving.ask(MetadataRequest(topics=[])).throttle_time_ms == 0


def test_a_request_of_too_many_changes_is_rejected_as_a_whole(serving: Serving) -> None:
    entries = [entry({"user": f"u{number}"}, producer_byte_rate=1.0) for number in range(10_001)]
    answer = serving.ask(AlterClientQuotasRequest(entries=entries))
    assert {found.error_code for found in answer.entries} == {ErrorCode.POLICY_VIOLATION}
    assert len(answer.entries) == 10_001
    assert described(serving) == []

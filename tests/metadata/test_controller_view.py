"""Fresh ids, and the client's quota of partitions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.metadata.controller_view import NO_ERROR, RESERVED_UUIDS, ControllerView
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import ControllerHarness


class Bytes(random.Random):
    """Draws these bytes, in order."""

    def __init__(self, *draws: bytes) -> None:
        self.draws = list(draws)
        super().__init__()

    def randbytes(self, n: int) -> bytes:
        assert len(self.draws[0]) == n
        return self.draws.pop(0)


class Quota:
    """Allows so many partitions."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.recorded: list[int] = []

    def record(self, permits: int) -> None:
        self.recorded.append(permits)
        if sum(self.recorded) > self.allowed:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")


def view(**fields: Any) -> ControllerView:
    return ControllerHarness().view()._replace(**fields)


def test_a_fresh_id_is_not_reserved_and_prints_without_a_leading_dash() -> None:
    plain = b"\xf7" + bytes(15)
    dashes = (b"\xf8" + bytes(15), b"\xfb" + bytes(15))
    draws = Bytes(*map(bytes, RESERVED_UUIDS), *dashes, plain)
    assert view(random=draws).new_uuid() == plain
    assert draws.draws == []
    assert view(random=Bytes(b"\xfc" + bytes(15))).new_uuid() == b"\xfc" + bytes(15)


def test_a_client_without_a_quota_may_create_what_it_likes() -> None:
    assert view().apply_partition_change_quota(10**6) == NO_ERROR


def test_an_exhausted_quota_is_the_error_of_the_item() -> None:
    limited = view(partition_quota=Quota(3))
    assert limited.apply_partition_change_quota(3) == NO_ERROR
    assert limited.apply_partition_change_quota(1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")


def create(*topics: tuple[str, int], validate_only: bool = False) -> messages.CreateTopicsRequest:
    topic = messages.CreateTopicsRequest.CreatableTopic
    return messages.CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=count, replication_factor=-1) for name, count in topics],
        validate_only=validate_only,
    )


def test_creating_growing_and_deleting_count_partitions_against_the_quota() -> None:
    harness = ControllerHarness()
    harness.register()
    quota = Quota(12)
    answer = harness.send(ApiKey.CREATE_TOPICS, create(("a", 3), ("b", 1)), mutation_quota=quota)
    assert [topic.error_code for topic in answer.topics] == [0, 0]
    grow = messages.CreatePartitionsRequest
    grown = grow(topics=[grow.CreatePartitionsTopic(name="a", count=7, assignments=None)])
    assert harness.send(ApiKey.CREATE_PARTITIONS, grown, mutation_quota=quota).results[0].error_code == 0
    delete = messages.DeleteTopicsRequest
    gone = delete(topics=[delete.DeleteTopicState(name="b"), delete.DeleteTopicState(name="a")])
    answer = harness.send(ApiKey.DELETE_TOPICS, gone, mutation_quota=quota)
    assert quota.recorded == [3, 1, 4, 1, 7]
    results = [(each.name, each.error_code, each.error_message) for each in answer.responses]
    assert results == [("b", 0, None), ("a", ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")]
    assert list(harness.controller.image.topics.by_name) == ["a"]


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_request_over_the_quota_creates_nothing(validate_only: bool) -> None:
    harness = ControllerHarness()
    harness.register()
    request = create(("a", 2), ("b", 1), validate_only=validate_only)
    answer = harness.send(ApiKey.CREATE_TOPICS, request, mutation_quota=Quota(1))
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert answer.topics[0].num_partitions == -1
    grow = messages.CreatePartitionsRequest
    harness.create("c")
    grown = grow(topics=[grow.CreatePartitionsTopic(name="c", count=3, assignments=None)])
    result = harness.send(ApiKey.CREATE_PARTITIONS, grown, mutation_quota=Quota(1)).results[0]
    assert (result.error_code, result.error_message) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many")
    assert len(harness.controller.image.topics.by_name["c"].partitions) == 1

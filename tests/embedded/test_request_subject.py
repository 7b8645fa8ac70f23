"""What requests of different APIs are about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.embedded.fault_plan import ANY_REQUEST, Where
from barnabas.embedded.request_subject import RequestSubject, subject_of
from barnabas.protocol.message import UNLIMITED
from barnabas.protocol.messages import (
    DeleteTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

ORDERS_ID = bytes(range(16))


def subject(request: Any, most: int = UNLIMITED) -> RequestSubject:
    topics = SimpleNamespace(by_id={ORDERS_ID: SimpleNamespace(name="orders")})
    services = SimpleNamespace(image=lambda: SimpleNamespace(topics=topics))
    return subject_of(SimpleNamespace(services=services), request, most)  # type: ignore[arg-type]


def produce(*partitions: int, **topic: Any) -> ProduceRequest:
    data = [ProduceRequest.PartitionProduceData(index=index, records=None) for index in partitions]
    return ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(partition_data=data, **topic)])


def test_topics_by_name_and_by_id() -> None:
    assert subject(produce(0, 2, name="orders")) == ({"orders": {0, 2}}, set(), None)
    assert subject(produce(1, topic_id=ORDERS_ID)).topics == {"orders": {1}}
    assert subject(produce(1, topic_id=bytes(15) + b"x")).topics == {}
    assert subject(DeleteTopicsRequest(topic_names=["a", "b"])).topics == {"a": set(), "b": set()}
    assert subject(MetadataRequest(topics=None)).topics == {}


def test_a_fetch_is_not_about_what_it_forgets() -> None:
    wanted = FetchRequest.FetchTopic(topic="orders", partitions=[FetchRequest.FetchPartition(partition=3)])
    forgotten = FetchRequest.ForgottenTopic(topic="other", partitions=[1])
    assert subject(FetchRequest(topics=[wanted], forgotten_topics_data=[forgotten])).topics == {"orders": {3}}


def test_groups_and_transactional_ids() -> None:
    assert subject(JoinGroupRequest(group_id="shop")).groups == {"shop"}
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="shop", topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1])]
    )
    assert subject(OffsetFetchRequest(groups=[of_group])) == ({"orders": {0, 1}}, {"shop"}, None)
    assert subject(FindCoordinatorRequest(key_type=0, coordinator_keys=["shop"])).groups == {"shop"}
    assert subject(FindCoordinatorRequest(key_type=1, coordinator_keys=["till"])).groups == set()
    assert subject(TxnOffsetCommitRequest(transactional_id="till", group_id="shop"))[1:] == ({"shop"}, "till")


def test_a_long_request_is_known_by_its_first_partitions() -> None:
    topics = [
        FetchRequest.FetchTopic(topic=f"t{n}", partitions=[FetchRequest.FetchPartition(partition=0)]) for n in range(9)
    ]
    assert len(subject(FetchRequest(topics=topics), most=4).topics) < 5
    assert len(subject(FetchRequest(topics=topics)).topics) == 9


@pytest.mark.parametrize(
    ("where", "is_met"),
    [
        (ANY_REQUEST, True),
        (Where(topic="orders"), True),
        (Where(topic="other"), False),
        (Where(topic="orders", partition=2), True),
        (Where(topic="orders", partition=1), False),
        (Where(topic="empty", partition=2), False),
        (Where(partition=2), True),
        (Where(partition=1), False),
        (Where(client_id="app", group="shop"), True),
        (Where(client_id="app", group="till"), False),
        (Where(client_id="ap"), False),
    ],
)
def test_a_request_is_met(where: Where, is_met: bool) -> None:
    assert RequestSubject({"orders": {0, 2}, "empty": set()}, {"shop"}, None).meets(where, "app") is is_met

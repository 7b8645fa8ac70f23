"""Dispatch: requests that are not served, do not decode or fail; and the table of APIs."""

from __future__ import annotations

import logging
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.serving import dispatch
from barnabas.api.serving.dispatch import FAILURE_LINES_MAX, RefusedRequest
from barnabas.protocol.api_keys import ApiKey, api, descriptions, request_header_version
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    TxnOffsetCommitRequest,
)
from barnabas.turns import TURN
from tests.api.served_node import Serving


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Any:
    node = Serving(tmp_path_factory.mktemp("dispatch"))
    yield node
    node.close()


def test_every_served_range_lies_within_kafkas() -> None:
    assert list(APIS) == sorted(APIS)
    for key, served in APIS.items():
        known = api(key)
        assert served.min_version == known.advertised_min, known.name
        assert served.max_version == known.latest_stable, known.name
        assert known.min_version <= served.min_served <= served.max_version, known.name


def test_every_served_module_has_its_header_and_handler(serving: Serving) -> None:
    import importlib

    for served in APIS.values():
        module = importlib.import_module(f"barnabas.api.{served.module}")
        assert callable(module.handle)
        assert "ersion" in (module.__doc__ or "")


def test_api_versions_of_an_unknown_version_is_answered_in_version_0(serving: Serving) -> None:
    for body in (b"", b"\x04abc\x041.0\x00", b"\xff" * 30):
        answer = serving.send(18, 99, body)
        # No tag buffer behind the header; error 35; one range, that of ApiVersions.
        assert answer == struct.pack(">hihhh", 35, 1, 18, 0, 5)


def test_produce_is_advertised_from_0_and_rejected_below_3(serving: Serving) -> None:
    ranges = {r.api_key: (r.min_version, r.max_version) for r in serving.ask(ApiVersionsRequest(), 0).api_keys}
    assert ranges[0] == (0, 13)
    for version in (0, 1, 2):
        with pytest.raises(RefusedRequest, match=f"Produce version {version} is not served"):
            serving.send(0, version, struct.pack(">hii", 1, 1000, 0))


@pytest.mark.parametrize(
    ("key", "version", "body", "reason"),
    [
        (99, 0, b"", "no API has the key 99"),
        (-1, 0, b"", "no API has the key -1"),
        (4, 0, b"", "no API has the key 4"),
        (3, 99, b"", "Metadata version 99"),
        (1, 3, b"", "Fetch version 3"),
        (22, 6, b"", "InitProducerId version 6"),
        (52, 0, b"\0\1\0", "controller listeners only"),
        (3, 1, b"\0\0", "malformed Metadata request, version 1"),
        (3, 12, b"\xff\xff\xff\xff\x0f", "malformed Metadata request"),
        (18, 3, b"\x02a", "malformed ApiVersions request"),
    ],
)
def test_requests_for_which_kafka_closes_the_connection(
    serving: Serving, key: int, version: int, body: bytes, reason: str
) -> None:
    # The header of a key that nobody knows is taken to be of the old kind.
    header = struct.pack(">hhih", key, version, 1, -1)
    if key in descriptions() and request_header_version(key, version) >= 2:
        header += b"\0"
    with pytest.raises(RefusedRequest, match=reason):
        serving.dispatcher.dispatch(serving.connection, memoryview(header + body))


@pytest.mark.parametrize("frame", [b"", b"\0\3", struct.pack(">hhih", 3, 1, 1, 500), struct.pack(">hhih", 3, 1, 1, -7)])
def test_a_malformed_header_closes_the_connection(serving: Serving, frame: bytes) -> None:
    with pytest.raises(RefusedRequest, match="request header"):
        serving.dispatcher.dispatch(serving.connection, memoryview(frame))


def test_bytes_after_the_body_are_ignored(serving: Serving) -> None:
    assert serving.send(3, 1, struct.pack(">i", -1) + b"zzz") is not None


def test_an_api_that_is_not_served_says_so_where_its_response_has_room(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(APIS, 24)
    monkeypatch.delitem(APIS, 28)
    Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[Topic(name="a", partitions=[0, 7])],
    )
    (topic,) = serving.ask(request, 3).results_by_topic_v3_and_below
    assert topic.name == "a"
    assert [(p.partition_index, p.partition_error_code) for p in topic.results_by_partition] == [(0, 35), (7, 35)]

    Commit = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    Partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    commit = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        topics=[
            Commit(name="a", partitions=[Partition(partition_index=3, committed_offset=1, committed_metadata=None)])
        ],
    )
    (answered,) = serving.ask(commit, 3).topics
    assert (answered.name, answered.partitions[0].partition_index, answered.partitions[0].error_code) == ("a", 3, 35)


def test_every_api_of_kafka_gets_an_answer_or_a_reason(serving: Serving) -> None:
    """No request that Kafka knows, empty and in its newest version, ends in an exception of ours."""
    for key, known in descriptions().items():
        request = known.request_class()
        try:
            body = request.encode(known.latest_stable)
        except KafkaError:
            continue  # its newest version is not stable, or it has fields without a default
        try:
            serving.send(key, known.latest_stable, body)
        except RefusedRequest:
            # An empty DescribeAcls is of an unknown type, which makes it unreadable.
            assert "broker" not in known.listeners or key not in APIS or key == ApiKey.DESCRIBE_ACLS


def test_sasl_on_a_listener_without_sasl(serving: Serving) -> None:
    assert serving.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert serving.ask(SaslAuthenticateRequest(auth_bytes=b""), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_acls_without_an_authorizer(serving: Serving) -> None:
    anything: dict[str, Any] = {
        "operation": 1,
        "permission_type": 1,
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
    }
    anything |= dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    answer = serving.ask(DescribeAclsRequest(**anything))
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    assert answer.error_message == "No Authorizer is configured on the broker"
    wanted = CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )
    created = serving.ask(CreateAclsRequest(creations=[wanted, wanted])).results
    assert [(r.error_code, r.error_message) for r in created] == [(54, "No Authorizer is configured.")] * 2
    unwanted = DeleteAclsRequest.DeleteAclsFilter(**anything)
    deleted = serving.ask(DeleteAclsRequest(filters=[unwanted])).filter_results
    assert [(r.error_code, r.error_message) for r in deleted] == [(54, "No Authorizer is configured.")]


def test_an_exception_in_a_handler_is_logged_and_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = Serving(tmp_path)
    try:
        route = serving.dispatcher.route(ApiKey.METADATA)

        def broken(context: Any, request: Any) -> Any:
            raise ZeroDivisionError("ours")

        monkeypatch.setattr(route, "handle", broken)
        topic = MetadataRequest.MetadataRequestTopic(name="a")
        with caplog.at_level(logging.ERROR):
            answer = serving.ask(MetadataRequest(topics=[topic]), 9)
        assert [(t.name, t.error_code) for t in answer.topics] == [("a", ErrorCode.UNKNOWN_SERVER_ERROR)]
        assert "ZeroDivisionError" in caplog.text
        assert serving.ask(MetadataRequest(topics=[topic]), 13).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        for _ in range(50):
            serving.ask(MetadataRequest(topics=[topic]), 9)
        # A client can send such a request as often as it likes.
        assert len(caplog.records) == FAILURE_LINES_MAX
    finally:
        serving.close()


def test_flexible_and_old_encodings_get_the_same_answer(serving: Serving) -> None:
    for version in range(14):
        answer = serving.ask(MetadataRequest(topics=None if version else []), version)
        assert [broker.node_id for broker in answer.brokers] == [1]
    # An unknown tagged field is skipped.
    body = MetadataRequest(topics=[]).encode(12)
    assert body.endswith(b"\0")
    assert serving.send(3, 12, body[:-1] + b"\x01\x63\x02zz") is not None


NOT_COMPARED = (
    ApiKey.FETCH,  # session id
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,  # client instance id
    ApiKey.DESCRIBE_LOG_DIRS,  # free space
    ApiKey.DESCRIBE_ACLS,  # an empty one is unreadable
)


@pytest.mark.parametrize("what", ["request", "response"])
def test_the_executor_decodes_and_encodes_the_same_messages(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    serving.create_topic(f"long-{what}", 3)
    asked = [
        (key, served.max_version, api(key).request_class().encode(served.max_version))
        for key, served in APIS.items()
        if key not in NOT_COMPARED
    ]
    asked.append((ApiKey.METADATA, 13, MetadataRequest(topics=None).encode(13)))
    before = [serving.send(*one) for one in asked]
    used: list[str] = []
    run = serving.loop.run_in_executor

    def counted(executor: Any, work: Any, *arguments: Any) -> Any:
        used.append(work.__name__)
        return run(executor, work, *arguments)

    if what == "request":
        monkeypatch.setattr(dispatch, "TURN", -1)  # No frame is so short that it need not be asked for.
        monkeypatch.setattr(dispatch, "is_long", lambda cost: True)
    else:
        monkeypatch.setattr(dispatch, "_elements", lambda message: math.inf)
    monkeypatch.setattr(serving.loop, "run_in_executor", counted)
    after = [serving.send(*one) for one in asked]
    assert [x for x in zip(asked, before, after, strict=True) if x[1] != x[2]] == []
    assert used.count("encode") >= 5
    assert (used.count("_decode") > 50) == (what == "request")


def test_a_large_request_that_does_not_decode_closes_the_connection(serving: Serving) -> None:
    names = TURN * dispatch.BYTES * b"\xff\xff"
    with pytest.raises(RefusedRequest, match="malformed Metadata request, version 1"):
        serving.send(3, 1, struct.pack(">i", len(names) // 2) + names)


def test_request_and_response_of_a_long_request_are_freed_in_many_turns(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[str] = []

    async def noted(message: Any) -> None:
        freed.append(type(message).__name__)

    monkeypatch.setattr(dispatch, "is_long", lambda cost: True)
    monkeypatch.setattr(dispatch, "let_go", noted)
    serving.send(ApiKey.METADATA, 13, MetadataRequest(topics=None).encode(13))
    assert freed == ["MetadataResponse", "MetadataRequest"]

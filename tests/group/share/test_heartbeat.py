"""Heartbeats of share groups: which are accepted, what the answer says, and which are rejected with which error."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ShareGroupHeartbeatRequest
from barnabas.steps import start
from tests.group.share.hosting import INTERVAL_MS, Host


def send(host: Host, **fields: Any) -> Any:
    """Send a heartbeat; one that says nothing else joins."""
    given = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["q"], **fields}
    answer = start(host.service.heartbeat(ShareGroupHeartbeatRequest(**given), Sender("client", "/host", 1)), host.loop)
    host.loop.run_ready()
    return answer.result()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_no_group_accepts_is_rejected(fields: dict[str, Any], words: str) -> None:
    answer = send(Host(), **fields)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, words)


def test_only_a_join_makes_a_group() -> None:
    host = Host()
    for epoch in (1, -1):
        answer = send(host, member_epoch=epoch)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert not host.log.batches.get(0)
    assert send(host).error_code == 0
    assert host.group.group_id == "g"


def test_the_error_of_a_missing_group_names_it() -> None:
    assert send(Host(), member_epoch=1).error_message == "Share group g not found."


def test_a_full_group_accepts_only_its_members() -> None:
    host = Host()
    host.settings = {"group_share_max_size": 2}
    host.fail_over()
    for name in "ab":
        assert send(host, member_id=name).error_code == 0
    refused = send(host, member_id="c")
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The share group has reached its maximum capacity of 2 members."
    assert send(host, member_id="b").error_code == 0, "a member may join again"
    assert list(host.group.members) == ["a", "b"]
    send(host, member_id="a", member_epoch=-1)
    assert send(host, member_id="c").error_code == 0


def test_epochs_that_are_neither_the_present_nor_the_last_are_fenced() -> None:
    host = Host(q=1, r=1)
    host.join("m")
    host.join("n", "r")
    host.loop.advance(INTERVAL_MS)
    epoch = host.heartbeat("m", host.group.members["m"].member_epoch).member_epoch
    previous = host.group.members["m"].previous_member_epoch
    assert previous < epoch
    greater = send(host, member_epoch=epoch + 1)
    assert greater.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert f"greater member epoch ({epoch + 1})" in greater.error_message
    smaller = send(host, member_epoch=1)
    assert smaller.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "smaller member epoch (1)" in smaller.error_message
    assert send(host, member_epoch=previous, subscribed_topic_names=None).error_code == 0
    assert send(host, member_epoch=epoch, member_id="stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert send(host, member_epoch=-1, member_id="stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_answer_has_the_assignment_when_it_is_new_or_asked_for() -> None:
    host = Host()
    epoch = host.join("m")
    assert host.heartbeat("m", epoch).assignment is None
    full = host.heartbeat("m", epoch, "q")
    (topic,) = full.assignment.topic_partitions
    assert (bytes(topic.topic_id), topic.partitions) == (host.q, [0, 1])
    again = send(host)
    assert (again.member_id, again.member_epoch, again.heartbeat_interval_ms) == ("m", epoch, 5_000)
    assert again.assignment == full.assignment, "a member that joins again hears of all"


def test_a_heartbeat_changes_what_it_names_and_keeps_the_rest() -> None:
    host = Host(q=1, r=1)
    epoch = send(host, rack_id="here").member_epoch
    epoch = send(host, member_epoch=epoch, subscribed_topic_names=None).member_epoch
    member = host.group.members["m"]
    assert (member.rack_id, member.subscribed_topic_names) == ("here", {"q"})
    assert (member.client_id, member.client_host) == ("client", "/host")
    send(host, member_epoch=epoch, subscribed_topic_names=["r"], rack_id="there")
    member = host.group.members["m"]
    assert (member.rack_id, member.subscribed_topic_names) == ("there", {"r"})


def test_a_member_that_leaves_is_answered_with_its_id_and_removed() -> None:
    host = Host()
    host.join("m")
    answer = host.heartbeat("m", -1)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", -1)
    assert answer.assignment is None
    assert host.group.members == {}


@pytest.mark.parametrize(("given", "returned"), [("NOT_ENOUGH_REPLICAS", "COORDINATOR_NOT_AVAILABLE")])
def test_an_error_of_the_log_is_the_coordinators_own_error(given: str, returned: str) -> None:
    host = Host()
    host.log.refuse = ErrorCode[given]
    answer = send(host)
    assert (answer.error_code, answer.error_message) == (ErrorCode[returned], None)


def test_a_failed_initialization_is_logged_with_the_number_of_partitions(caplog: pytest.LogCaptureFixture) -> None:
    host = Host(q=3)
    host.persister.fails = {0, 2}
    send(host)
    assert "share group g: 2 partitions could not be initialized" in caplog.text
    assert {topic.partitions for topic in host.group.state_partitions.initialized.values()} == {frozenset({1})}
    assert host.group.state_partitions.initializing == {}

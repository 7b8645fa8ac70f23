"""The group itself: transitions, protocols, leadership, subscriptions."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.member import ClassicGroupMember
from barnabas.group.group import OffsetCommitter
from barnabas.group.offset_store import OffsetAndMetadata
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerProtocolSubscription

S = ClassicGroupState


def subscription(*topics: str, version: int = 0) -> bytes:
    message = ConsumerProtocolSubscription(topics=list(topics))
    return version.to_bytes(2, "big") + message.encode(version)


def member(name: str, protocols: dict[str, bytes] | None = None, **fields: Any) -> ClassicGroupMember:
    values: dict[str, Any] = {
        "member_id": name,
        "group_instance_id": None,
        "client_id": name,
        "client_host": "/h",
        "rebalance_timeout_ms": 60_000,
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": protocols or {"range": subscription("t")},
    }
    return ClassicGroupMember(**(values | fields))


def preparing(*members: ClassicGroupMember) -> ClassicGroup:
    group = ClassicGroup("g", now_ms=0)
    for one in members:
        group.add(one)
    group.transition_to(S.PREPARING_REBALANCE, 1)
    return group


ALLOWED = {
    (S.PREPARING_REBALANCE, S.EMPTY),
    (S.EMPTY, S.PREPARING_REBALANCE),
    (S.STABLE, S.PREPARING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.PREPARING_REBALANCE),
    (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.STABLE),
} | {(state, S.DEAD) for state in S}


@pytest.mark.parametrize("before", list(S))
@pytest.mark.parametrize("after", list(S))
def test_transitions(before: ClassicGroupState, after: ClassicGroupState) -> None:
    group = ClassicGroup("g", now_ms=0, state=before)
    if (before, after) in ALLOWED:
        group.transition_to(after, 7)
        assert (group.state, group.previous_state, group.current_state_timestamp_ms) == (after, before, 7)
    else:
        with pytest.raises(AssertionError):
            group.transition_to(after, 7)


def test_most_votes_win_and_the_first_of_equals() -> None:
    names = dict.fromkeys(("range", "roundrobin"), b"")
    back = dict(reversed(names.items()))
    assert preparing(member("a", names), member("b", back), member("c", back)).select_protocol() == "roundrobin"
    assert preparing(member("a", names), member("b", back)).select_protocol() == "range"
    assert preparing(member("a", names | {"own": b""}), member("b", {"range": b""})).select_protocol() == "range"


def test_supported_protocols_follow_members() -> None:
    group = preparing(member("a", {"range": b"", "sticky": b""}), member("b", {"range": b""}))
    assert not group.supports_protocols("consumer", ["sticky"])
    group.remove("b")
    assert group.supports_protocols("consumer", ["sticky"])
    assert not group.supports_protocols("connect", ["sticky"])
    group.update_member(group.members["a"], {"other": b""}, 1, 2, None)
    assert not group.supports_protocols("consumer", ["sticky"])
    assert group.rebalance_timeout_ms == 1


def test_leadership_goes_to_the_next_in_line() -> None:
    group = preparing(member("a"), member("b"), member("c"))
    assert group.leader_id == "a"
    group.remove("a")
    assert group.leader_id == "b"
    group.remove("c")
    group.remove("b")
    assert group.leader_id is None


def test_a_replaced_static_member_keeps_its_place() -> None:
    group = preparing(member("a", group_instance_id="ia"), member("b"))
    group.pending_sync_members["a"] = None
    group.replace_static_member("ia", "a", "a2")
    assert list(group.members) == ["a2", "b"]
    assert (group.leader_id, group.static_members) == ("a2", {"ia": "a2"})
    assert list(group.pending_sync_members) == ["a2"]


def test_waiting_members_are_counted() -> None:
    answers: list[Any] = []
    group = ClassicGroup("g", now_ms=0)
    group.add(member("a"), answers.append)
    group.add(member("b"), answers.append)
    assert group.has_all_members_joined
    group.pending_join_members["c"] = None
    assert not group.has_all_members_joined
    group.remove("c")
    group.remove("b")
    assert (group.awaiting_join_count, group.has_all_members_joined) == (1, True)
    assert group.complete_join(group.members["a"], group.join_response("a", with_members=False))
    assert not group.complete_join(group.members["a"], group.join_response("a", with_members=False))
    assert (group.awaiting_join_count, len(answers)) == (0, 1)


def test_validate_member() -> None:
    group = preparing(member("a", group_instance_id="ia"), member("b"))
    group.validate_member("a", "ia")
    group.validate_member("a", None)
    for member_id, instance_id, error in (
        ("a", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("b", "ia", ErrorCode.FENCED_INSTANCE_ID),
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError) as raised:
            group.validate_member(member_id, instance_id)
        assert raised.value.code is error


def test_member_ids_are_uuids() -> None:
    group, rng = ClassicGroup("g", now_ms=0), random.Random(3)
    version_4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    ids = {group.new_member_id("client", None, rng) for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch("client-" + version_4, member_id) for member_id in ids)
    assert group.new_member_id("client", "instance", rng).startswith("instance-")


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version(version: int) -> None:
    group = preparing(
        member("a", {"range": subscription("t", "u", version=version)}), member("b", {"range": subscription("v")})
    )
    group.init_next_generation(1)
    assert group.subscribed_topics == {"t", "u", "v"}
    assert group.is_subscribed_to_topic("t")
    assert not group.is_subscribed_to_topic("w")


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\x00\x00\x00", b"\xff\xff\x00\x00", b"\x00\x00\x7f\xff\xff\xff"])
def test_unreadable_subscriptions_are_not_known(metadata: bytes) -> None:
    group = preparing(member("a", {"range": metadata}))
    group.init_next_generation(1)
    assert group.subscribed_topics is None
    assert group.is_subscribed_to_topic("anything"), "so nothing of a consumer group may be thought unused"


def test_other_types_have_no_subscriptions() -> None:
    group = preparing(member("a", {"default": b""}, protocol_type="connect"))
    group.init_next_generation(1)
    assert group.subscribed_topics is None
    assert not group.is_subscribed_to_topic("t")


def test_a_member_that_names_a_generation_commits_only_as_a_member() -> None:
    group = ClassicGroup("g", now_ms=0)
    assert group.validate_offset_commit(OffsetCommitter("", None, -1, False, 9)) is None
    for epoch in (0, 1):
        with pytest.raises(KafkaError) as raised:
            group.validate_offset_commit(OffsetCommitter("a", None, epoch, False, 9))
        assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_leader_hears_of_every_member_with_its_instance_id_and_metadata() -> None:
    group = preparing(member("a", {"range": b"x"}, group_instance_id="ia"), member("b", {"range": b"y"}))
    group.init_next_generation(1)
    assert group.member_count == 2
    response = group.join_response(group.members["a"], with_members=True)
    assert [(one.member_id, one.group_instance_id, one.metadata) for one in response.members] == [
        ("a", "ia", b"x"),
        ("b", None, b"y"),
    ]
    assert (response.leader, response.generation_id, response.protocol_name) == ("a", 1, "range")
    assert group.join_response(group.members["b"], with_members=False).members == []


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    offset = OffsetAndMetadata(1, -1, "", 70)
    for since_ms, base in ((50, 50), (0, 0), (-1, 70)):
        group = ClassicGroup("g", now_ms=since_ms, protocol_type="consumer")
        expiry_base = group.offset_expiry_base()
        assert expiry_base is not None
        assert expiry_base(offset) == base
    simple = ClassicGroup("g", now_ms=50).offset_expiry_base()
    assert simple is not None
    assert simple(offset) == 70, "a group without a protocol type never had members"

"""What members keep when their group goes from one protocol to the other, and when it may not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.group.classic.consumer_protocol import read_assignment
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.consumer.member import MemberState
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, SyncGroupRequest
from barnabas.steps import start
from tests.group.consumer_script import ConsumerScriptRunner

CLASSIC = """\
> config group_initial_rebalance_delay_ms=0ms
> topic t 2
> topic u 1
> join a instance=ia protocols=range,sticky topics=t,u session=12s rebalance=34s
> sync a a=@t:0,1
"""
MIXED = """\
> config group_initial_rebalance_delay_ms=0ms
> topic t 2
> beat n
> join a instance=ia protocols=range,sticky session=12s rebalance=34s
> sync a
> beat n owned=t:0
> beat n owned=t:0
> join a instance=ia protocols=range,sticky session=12s rebalance=34s
> sync a
"""


def group_of(runner: ConsumerScriptRunner) -> Any:
    return runner.shard().groups["g"]


def join(runner: ConsumerScriptRunner) -> KafkaError | None:
    """Join with the new protocol; returns the error."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="n", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    answer = runner.coordinator.write("g", lambda shard: shard.consumer.heartbeat(request, Sender("n", "/h", 1)))
    runner.loop.advance(0)
    error = answer.exception()
    assert error is None or isinstance(error, KafkaError)
    return error


def test_a_classic_member_keeps_all_in_a_consumer_group() -> None:
    runner = ConsumerScriptRunner()
    runner.run(CLASSIC)
    assert join(runner) is None
    group = group_of(runner)
    assert isinstance(group, ConsumerGroup)
    t = runner.topic_id("t")
    member = group.members[runner.clients["a"].member_id]
    assert (member.instance_id, member.rack_id, member.client_id, member.client_host) == ("ia", None, "a", "/127.0.0.1")
    assert (member.member_epoch, member.previous_member_epoch, member.state) == (1, 1, MemberState.STABLE)
    assert (member.rebalance_timeout_ms, member.subscribed_topic_names) == (34_000, frozenset({"t", "u"}))
    assert member.classic is not None
    assert member.classic.session_timeout_ms == 12_000
    assert [name for name, _ in member.classic.protocols] == ["range", "sticky"]
    assert member.assigned == {t: {0: 1, 1: 1}}
    assert list(group.members) == [member.member_id, "n"]


def test_an_upgraded_member_has_its_own_session() -> None:
    runner = ConsumerScriptRunner()
    runner.run(CLASSIC)
    join(runner)
    runner.loop.advance(11_999)
    assert len(group_of(runner).members) == 2
    runner.loop.advance(1)
    assert list(group_of(runner).members) == ["n"]


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("> policy disabled\n" + CLASSIC, "online upgrade is disabled"),
        ("> policy downgrade\n" + CLASSIC, "online upgrade is disabled"),
        (CLASSIC.replace("a=@t:0,1", "a=+t:0,1"), "an unsupported custom assignor is in use. Please refer to the"),
        (CLASSIC.replace("> join a", "> join a type=connect").replace("> sync a", "> sync a type=connect"),
         "the group does not use the consumer embedded protocol"),
        ("> config group_consumer_max_size=0\n" + CLASSIC, "the group size exceeds the consumer group maximum size"),
        (CLASSIC.replace("topics=t,u", "metadata=x"), "the embedded consumer protocol is malformed"),
    ],
)  # fmt: skip
def test_a_group_that_cannot_become_a_consumer_group_stays_as_it_is(before: str, reason: str) -> None:
    runner = ConsumerScriptRunner()
    runner.run(before)
    error = join(runner)
    assert error is not None
    assert error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert error.message.startswith(f"Cannot upgrade classic group g to consumer group because {reason}")
    assert isinstance(group_of(runner), ClassicGroup)
    assert group_of(runner).state is ClassicGroupState.STABLE


@pytest.mark.parametrize("policy", ["upgrade", "UPGRADE", "bidirectional"])
def test_policies_that_allow_an_upgrade(policy: str) -> None:
    runner = ConsumerScriptRunner()
    runner.run(f"> policy {policy}\n" + CLASSIC)
    assert join(runner) is None


def test_a_member_keeps_all_in_a_classic_group() -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED + "> beat n epoch=-1\n")
    group = group_of(runner)
    assert isinstance(group, ClassicGroup)
    assert (group.generation_id, group.protocol_type, group.protocol_name) == (3, "consumer", "range")
    assert (group.subscribed_topics, group.static_members) == (frozenset({"t"}), {"ia": runner.clients["a"].member_id})
    (member,) = group.members.values()
    assert group.leader_id == member.member_id == runner.clients["a"].member_id
    assert (member.group_instance_id, member.client_id, member.client_host) == ("ia", "a", "/127.0.0.1")
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (34_000, 12_000)
    assert list(member.protocols) == ["range", "sticky"]
    (part,) = read_assignment(member.assignment).assigned_partitions
    assert (part.topic, part.partitions) == ("t", [1])


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ("> policy upgrade\n", ConsumerGroup),
        ("> policy downgrade\n", ClassicGroup),
        ("> policy Bidirectional\n", ClassicGroup),
        ("> config group_max_size=1\n", ClassicGroup),
        ("> config group_max_size=0\n", ConsumerGroup),
    ],
)
def test_a_group_becomes_classic_only_if_that_is_allowed(settings: str, kind: type) -> None:
    runner = ConsumerScriptRunner()
    runner.run(settings + MIXED + "> beat n epoch=-1\n")
    assert type(group_of(runner)) is kind
    assert "n" not in group_of(runner).members


def test_a_group_without_members_of_the_old_protocol_stays_a_consumer_group() -> None:
    runner = ConsumerScriptRunner()
    runner.run("> topic t 2\n> beat n\n> beat n epoch=-1\n")
    assert isinstance(group_of(runner), ConsumerGroup)
    assert group_of(runner).is_empty


def test_a_member_of_a_group_that_has_become_classic_has_one_session_the_classic_one() -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED + "> advance 11s\n> beat n epoch=-1\n> advance 2s\n")
    assert len(group_of(runner).members) == 1, "the session began with the classic group"
    runner.run("> advance 10s\n")
    assert group_of(runner).is_empty


def test_a_group_that_has_become_classic_has_no_timers_of_the_consumer_group() -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED)
    timer, member_id = runner.shard().environment.timer, runner.clients["a"].member_id
    assert f"session-timeout-g-{member_id}" in timer
    runner.run("> beat n epoch=-1\n")
    assert f"session-timeout-g-{member_id}" not in timer
    assert "session-timeout-g-n" not in timer


def test_a_fenced_member_is_noted_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    runner = ConsumerScriptRunner()
    with caplog.at_level("INFO"):
        runner.run("> topic t 2\n> beat a rebalance=5000\n> beat b\n> beat a\n> advance 5s\n")
    assert "group g: member a is fenced: did not give its partitions back at epoch 2 within 5000 ms" in caplog.text
    assert "member a: did not give its partitions back" in runner.run("> why g\n")


def test_a_fenced_member_that_the_log_keeps_is_fenced_every_half_second(caplog: pytest.LogCaptureFixture) -> None:
    runner = ConsumerScriptRunner()
    runner.run("> topic t 1\n> beat a\n> refuse NOT_ENOUGH_REPLICAS\n> advance 45s\n")
    for count in (1, 2, 3):
        assert caplog.text.count("group g: fencing a is not written") == count
        runner.run("> advance 500ms\n")
    assert list(group_of(runner).members) == ["a"]
    runner.log.refuse = None
    runner.loop.advance(499)
    assert list(group_of(runner).members) == ["a"]
    runner.loop.advance(1)
    assert group_of(runner).is_empty


def test_a_removed_member_has_no_timers() -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED.replace("> sync a\n", "", 1))
    timer, member_id = runner.shard().environment.timer, runner.clients["a"].member_id
    assert f"session-timeout-g-{member_id}" in timer
    runner.run("> leave a\n")
    kinds = ("session-timeout", "rebalance-timeout", "consumer-join", "consumer-sync")
    assert [kind for kind in kinds if f"{kind}-g-{member_id}" in timer] == []


def sync(runner: ConsumerScriptRunner, **fields: Any) -> Any:
    a = runner.clients["a"]
    given: dict[str, Any] = {
        "group_id": "g",
        "member_id": a.member_id,
        "generation_id": a.generation_id,
        "group_instance_id": "ia",
    }
    request = SyncGroupRequest(**(given | fields))
    answer = start(runner.classic.sync_group(runner.coordinator, request, Sender("a", "/h", 5)), runner.loop)
    runner.loop.advance(0)
    return answer.result()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x"}, ErrorCode.FENCED_INSTANCE_ID),
        ({"group_instance_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "n", "group_instance_id": None}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_of_a_classic_member_of_a_consumer_group(fields: dict[str, Any], code: ErrorCode) -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED)
    answer = sync(runner, **fields)
    assert answer.error_code == code
    if code is ErrorCode.NONE:
        assert (answer.protocol_type, answer.protocol_name) == (
            fields.get("protocol_type"),
            fields.get("protocol_name"),
        )
        (part,) = read_assignment(answer.assignment).assigned_partitions
        assert (part.topic, part.partitions) == ("t", [1])


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("join c metadata=x version=3", "c: join INCONSISTENT_GROUP_PROTOCOL"),
        ("join c type=connect version=3", "c: join INCONSISTENT_GROUP_PROTOCOL"),
        ("join c version=4", "c: join MEMBER_ID_REQUIRED"),
        ("join c version=3", "c: join NONE generation=4 protocol=range"),
        ("join c instance=ic version=9", "c: join NONE generation=4 protocol=range"),
        ("join a id=x", "a: join FENCED_INSTANCE_ID"),
        ("join c id=x instance=ic", "c: join UNKNOWN_MEMBER_ID"),
        ("heartbeat a", "a: heartbeat NONE"),
        ("heartbeat a generation=2", "a: heartbeat ILLEGAL_GENERATION"),
        ("heartbeat a id=x", "a: heartbeat FENCED_INSTANCE_ID"),
        ("leave id=x", "leave NONE x=UNKNOWN_MEMBER_ID"),
        ("leave instance=other", "leave NONE other=UNKNOWN_MEMBER_ID"),
        ("leave instance=ia", "leave NONE ia=NONE"),
        ("leave id=n", "leave NONE n=NONE"),
    ],
)
def test_a_request_of_the_classic_protocol_to_a_consumer_group(command: str, answer: str) -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED)
    assert answer in runner.run(f"> {command}\n")


def test_a_full_group_refuses_a_classic_member() -> None:
    runner = ConsumerScriptRunner()
    runner.run("> config group_consumer_max_size=2\n" + MIXED)
    assert "c: join GROUP_MAX_SIZE_REACHED" in runner.run("> join c version=3\n")
    assert "a: join NONE" in runner.run("> join a instance=ia\n")


def test_a_heartbeat_and_a_sync_of_a_classic_member_renew_its_session() -> None:
    runner = ConsumerScriptRunner()
    runner.run(MIXED)
    for command in ("heartbeat a", "sync a", "heartbeat a"):
        runner.run(f"> advance 11s\n> beat n\n> {command}\n")
        assert len(group_of(runner).members) == 2
    runner.run("> advance 12s\n")
    assert "a" not in {member.client_id for member in group_of(runner).members.values()}


def test_a_member_that_rejoins_in_time_stays() -> None:
    runner = ConsumerScriptRunner()
    runner.run("> topic t 1\n> beat n\n> join c version=3 rebalance=5s session=30s\n> sync c\n> beat m\n")
    assert "REBALANCE_IN_PROGRESS" in runner.run("> heartbeat c\n")
    runner.run("> advance 4s\n> join c rebalance=5s session=30s\n> sync c\n> advance 20s\n")
    assert runner.clients["c"].member_id in group_of(runner).members

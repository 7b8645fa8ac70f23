"""Scenarios of groups: members that share, one that dies, commits, static members, share groups."""

from __future__ import annotations

import time

from tests.conform.card.stage import STEP_SECONDS, Stage, numbered, read, record, send


def classic_group(stage: Stage) -> None:
    """Three members share six partitions; one is killed, the other two take over what it had; another group replays all."""
    share_and_take_over(stage, "classic")


def consumer_group(stage: Stage) -> None:
    """The same in the consumer protocol of KIP-848, where the broker assigns."""
    share_and_take_over(stage, "consumer")


def share_and_take_over(stage: Stage, protocol: str) -> None:
    topic = stage.topic("shared", 6)
    group = stage.name("trio")
    members = [stage.driver() for _ in range(3)]
    for member in members:
        stage.subscribe(member, group, [topic], protocol=protocol)
    stage.transcript.append(stage.wait_for_assignment(members, 6))
    writer = stage.driver()
    for partition in range(6):
        send(writer, topic, partition, numbered("before", partition, 10))
    stage.commit_all(members, stage.read_all(members, 60))
    members[1].kill()
    survivors = [members[0], members[2]]
    for partition in range(6):
        send(writer, topic, partition, numbered("after", partition, 10))
    again = stage.read_all(survivors, 60)
    assert {row[4] for row in again} == {f"after {p} {i}" for p in range(6) for i in range(10)}
    stage.transcript.append(stage.wait_for_assignment(survivors, 6))
    stage.backlog = []
    stage.commit_all(survivors, again)
    committed = survivors[0]("committed", partitions=[[topic, p] for p in range(6)])
    assert committed == [[topic, p, 20] for p in range(6)], committed
    for member in survivors:
        member.close()
    replay = stage.driver()
    stage.subscribe(replay, stage.name("replay"), [topic], protocol=protocol, strategy="cooperative-sticky")
    found = read(replay, 120)
    for partition in range(6):
        values = [row[4] for row in found if row[1] == partition]
        assert values == [f"{word} {partition} {i}" for word in ("before", "after") for i in range(10)]
    replay("commit", offsets=[[topic, p, 20, f"note {p}"] for p in range(6)])
    stage.transcript.append(replay("committed", partitions=[[topic, p] for p in range(6)]))
    replay.close()


def static_member(stage: Stage) -> None:
    """A member with a name of its own comes back and has what it had, without a rebalance for the other."""
    topic = stage.topic("static", 4)
    group = stage.name("static")
    pair = [stage.driver(), stage.driver()]
    for index, member in enumerate(pair):
        stage.subscribe(member, group, [topic], instance=f"i{index}", session_ms=30_000)
    stage.wait_for_assignment(pair, 4)
    had = [member("assignment") for member in pair]
    pair[0].kill()
    back = stage.driver()
    stage.subscribe(back, group, [topic], instance="i0", session_ms=30_000)
    stage.wait_for_assignment([back, pair[1]], 4)
    assert [back("assignment"), pair[1]("assignment")] == had
    stage.transcript.append("came back to what it had")


def share_group(stage: Stage) -> None:
    """What a share consumer releases comes again, what it accepts or rejects does not; the next one goes on after it."""
    topic = stage.topic("queue")
    group = stage.name("workers")
    stage.broker_admin().set_group_config(group, share_auto_offset_reset="earliest")
    writer = stage.driver()
    send(writer, topic, 0, [record(None, f"job {i}") for i in range(12)])
    worker = stage.driver()
    worker("share_subscribe", group=group, topics=[topic])
    outcomes: dict[int, list[tuple[str, int]]] = {}
    deadline = time.monotonic() + STEP_SECONDS
    while sum(kinds[-1][0] != "release" for kinds in outcomes.values()) < 12:
        found = worker("share_poll", timeout_ms=500)
        answers = []
        for row in found:
            offset, deliveries = row[2], row[4]
            kind = "reject" if offset % 4 == 0 else "release" if offset % 4 == 1 and deliveries == 1 else "accept"
            outcomes.setdefault(offset, []).append((kind, deliveries))
            answers.append([*row[:3], kind])
        if answers:
            worker("share_acknowledge", records=answers)
        assert time.monotonic() < deadline, outcomes
    for offset, kinds in outcomes.items():
        expected = (
            [("release", 1), ("accept", 2)] if offset % 4 == 1 else [("reject" if offset % 4 == 0 else "accept", 1)]
        )
        assert kinds == expected, (offset, kinds)
    assert worker("share_poll", timeout_ms=1000) == []
    stage.transcript.append(sorted((offset, kinds) for offset, kinds in outcomes.items()))
    worker.close()
    late = stage.driver()
    late("share_subscribe", group=group, topics=[topic])
    assert late("share_poll", timeout_ms=1000) == []
    send(writer, topic, 0, [record(None, "one more")])
    found = []
    while not found:
        found = late("share_poll", timeout_ms=500)
        assert time.monotonic() < deadline
    assert [row[2:4] for row in found] == [[12, "one more"]]
    late("share_acknowledge", records=[[*found[0][:3], "accept"]])
    late.close()

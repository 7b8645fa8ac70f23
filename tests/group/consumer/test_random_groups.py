"""Random lives of a consumer group: members of both protocols come, go, stall and forget; topics change; coordinators move.

After each step
- no partition is with two members, as the members themselves see it: one may use a partition from the answer that gives it until it has
  told the coordinator that it has given it back;
- the shard read again from the log is the shard in memory.

And when everybody keeps sending heartbeats, the group settles with each partition at exactly one member.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from barnabas.group.classic.group import ClassicGroup
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.group.consumer_script import ConsumerScriptRunner

Part = tuple[bytes, int]


class Member:
    """A client of the consumer protocol that does as it is told, sometimes late.

    Attributes:
        uses: the partitions that it works on.
    """

    def __init__(self, name: str, rng: random.Random, topics: list[str] | None, regex: str | None) -> None:
        self.name = name
        self.rng = rng
        self.topics = topics
        self.regex = regex
        self.instance_id = f"i-{name[0]}" if rng.random() < 0.3 else None
        self.epoch = 0
        self.uses: set[Part] = set()
        self.told: set[Part] = set()
        self.lost_answer = False

    def request(self) -> ConsumerGroupHeartbeatRequest:
        joins = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=self.name, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if joins or self.lost_answer or self.rng.random() < 0.1:
            request.rebalance_timeout_ms = 30_000
            request.subscribed_topic_names = self.topics
            request.subscribed_topic_regex = self.regex
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in sorted(self.uses):
            by_topic.setdefault(topic_id, []).append(partition)
        request.topic_partitions = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in by_topic.items()
        ]
        return request

    def answered(self, response: Any) -> None:
        self.epoch, self.lost_answer = response.member_epoch, False
        if response.assignment is not None:
            self.told = {(p.topic_id, i) for p in response.assignment.topic_partitions for i in p.partitions}
            self.uses |= self.told
        self.reconcile()

    def reconcile(self) -> None:
        """Give back what it should, now or at a later heartbeat."""
        if self.rng.random() < 0.7:
            self.uses &= self.told

    def lose(self) -> None:
        """Fenced, or silent for too long: it stops and begins anew."""
        self.epoch, self.uses, self.told = 0, set(), set()


class World(ConsumerScriptRunner):
    """One group, its members and its cluster."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.broker_settings["group.consumer.assignment.interval.ms"] = str([0, 1000][seed % 2])
        self.random = random.Random(seed)
        self.members: list[Member] = []
        self.count = 0
        for topic in ("ta", "tb"):
            self.coordinator.on_topics_changed(self.cluster.set_topic(topic, 1 + self.random.randrange(6)))

    def beat(self, member: Member) -> None:
        try:
            future = self._beat(member.request(), member.name)
            response = future.result()
        except KafkaError as error:
            expected = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID}
            expected |= {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND}
            if error.code not in expected:
                raise
            member.lose()
            if error.code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
                self.members.remove(member)
            return
        if self.random.random() < 0.1 and member.epoch != 0:
            member.lost_answer = True  # The next request tells all, as after any failure.
            return
        member.answered(response)

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.12 or not self.members:
            self.join()
        elif choice < 0.17:
            self.leave(self.random.choice(self.members))
        elif choice < 0.2:
            self.change_topics()
        elif choice < 0.23:
            self.do_failover()
            self.loop.run_ready()
        elif choice < 0.28:
            self.pass_time(self.random.choice([1_000, 11_000, 31_000]))
        else:
            self.beat(self.random.choice(self.members))
        self.loop.advance(0)

    def join(self) -> None:
        self.count += 1
        regex = self.random.choice([None, None, "t.*", "ta"])
        topics = None if regex else self.random.choice([["ta"], ["ta", "tb"], ["ta", "tb", "tc"]])
        member = Member(f"{self.random.choice('abc')}{self.count}", self.random, topics, regex)
        self.members.append(member)
        self.beat(member)

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        if self.random.random() < 0.3:
            return  # It dies without a word: its session has to end.
        request = member.request()
        request.member_epoch = -2 if member.instance_id and self.random.random() < 0.5 else -1
        future = self._beat(request, member.name)
        assert future.done()
        future.exception()

    def change_topics(self) -> None:
        name = self.random.choice(["ta", "tb", "tc"])
        known = self.cluster.image.topics.by_name.get(name)
        if known is not None and self.random.random() < 0.4:
            delta = self.cluster.delete_topic(name)
        else:
            delta = self.cluster.set_topic(name, self.random.randrange(1, 4) + (len(known.partitions) if known else 0))
        self.coordinator.on_topics_changed(delta)

    def pass_time(self, delay_ms: int) -> None:
        """Time passes; clients whose session or rebalance timeout may have ended meanwhile stop by themselves, as real ones do."""
        self.loop.advance(delay_ms)
        if delay_ms > 30_000:
            for member in self.members:
                if member.uses - member.told:
                    member.lose()

    # -- what must be true -------------------------------------------------------------------------------------------

    def check(self) -> None:
        group = self.group()
        owners = Counter(part for member in self.members if self.is_alive(group, member) for part in member.uses)
        assert not [part for part, count in owners.items() if count > 1], owners
        before = self.picture(group)
        self.do_failover()
        self.loop.run_ready()
        assert self.picture(self.group()) == before

    def group(self) -> ConsumerGroup | None:
        group = self.shard().groups.get("g")
        assert not isinstance(group, ClassicGroup)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    @staticmethod
    def is_alive(group: ConsumerGroup | None, member: Member) -> bool:
        return group is not None and member.name in group.members

    @staticmethod
    def picture(group: ConsumerGroup | None) -> Any:
        if group is None:
            return None
        return (
            group.state,
            group.group_epoch,
            group.assignment_epoch,
            group.metadata_hash,
            group.members,
            group.target_assignment,
            group.inverted_target_assignment,
            group.subscribed_topic_names,
            group.homogeneous,
            group.static_members,
            group.resolved_regexes,
            +group.regex_subscribers,
            group._partition_epochs,
        )

    def settle(self) -> None:
        """Everybody sends heartbeats and does as told, until nothing changes."""
        for member in self.members:
            member.rng = random.Random(1)
            member.rng.random = lambda: 0.5  # type: ignore[method-assign]
        self.random.random = lambda: 0.5  # type: ignore[method-assign]
        for _ in range(30):
            for member in list(self.members):
                self.beat(member)
                self.loop.run_ready()  # Heartbeats of one turn would share a batch.
            self.loop.advance(3_000)
        group = self.group()
        if not self.members:
            return
        assert group is not None
        assert group.state_name() == "Stable", group
        assert set(group.members) == {member.name for member in self.members}
        wanted = {
            (topic.topic_id, index)
            for name, topic in self.cluster.image.topics.by_name.items()
            if group.is_subscribed_to_topic(name)
            for index in topic.partitions
        }
        assert Counter(part for member in self.members for part in member.uses) == Counter(dict.fromkeys(wanted, 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_lives(seed: int) -> None:
    world = World(seed)
    for _ in range(100):
        world.step()
        world.check()
    world.settle()

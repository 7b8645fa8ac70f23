"""A share group of two members that accept each record they get, and what the group may not do: leave a record out, or give an accepted
one again.

A commit whose answer is lost with its broker is open: the record may come again, or not. So only commits that were answered count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, ShareConsumer

from barnabas.client.admin import Admin
from barnabas.client.configs import ConfigChange, ConfigResource, ResourceType
from tests.cluster.exchange_judge import Verdict
from tests.cluster.load import QUICK
from tests.cluster.meanwhile.companion import Companion
from tests.cluster.waiting import NeverCame, wait_for
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker

MEMBERS = 2
ACCEPTED = "accepted by the share group"
FINISH_SECONDS = 150.0
"""A record whose lock a dead member's session holds is free after 30 seconds."""


class Delivered(NamedTuple):
    """A member got this record."""

    partition: int
    offset: int


class Accepted(NamedTuple):
    """The group's coordinator has answered that it took the member's acknowledgement."""

    partition: int
    offset: int


def judge_share_group(
    events: Sequence[Delivered | Accepted], ends: Mapping[int, int], unfinished: Mapping[int, int | None]
) -> Verdict:
    """Judge what the members of a share group got, on partitions without gaps in their offsets.

    Args:
        ends: by partition, the end of the log.
        unfinished: by partition, how many records the group has not finished, as its coordinator counts; None if that release of
            Apache Kafka does not count.
    """
    accepted: set[tuple[int, int]] = set()
    delivered: set[tuple[int, int]] = set()
    again = []
    deliveries = 0
    for each in events:
        if isinstance(each, Accepted):
            accepted.add((each.partition, each.offset))
            continue
        deliveries += 1
        if (each.partition, each.offset) in accepted:
            again.append(f"{each.partition}: {each.offset}")
        delivered.add((each.partition, each.offset))
    left_out = [
        f"{index}: {offset}" for index, end in ends.items() for offset in range(end) if (index, offset) not in delivered
    ]
    verdict = Verdict(
        {
            "delivered to the share group": deliveries,
            ACCEPTED: len(accepted),
            "more than once, before an answer": deliveries - len(delivered),
        }
    )
    verdict.found("left out", left_out)
    verdict.found("given again after it was accepted", again)
    left = {index: unfinished.get(index, end) for index, end in ends.items()}
    verdict.found("not finished", [f"{index}: {count}" for index, count in left.items() if count])
    verdict.found("empty checks", [] if accepted and ends else ["the group accepted nothing"])
    return verdict


class ShareMember(Worker):
    """One member; it appends to the list that all members share.

    Attributes:
        failures: errors that are not of the kind that passes.
    """

    def __init__(self, bootstrap_servers: str, topic: str, group: str, events: list[Delivered | Accepted]) -> None:
        super().__init__()
        self._topic, self._events = topic, events
        self.failures: list[str] = []
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers, "group.id": group, "share.acknowledgement.mode": "explicit",
            "socket.timeout.ms": 6000, **QUICK, **way_in.library,
        }  # fmt: skip

    def _run(self) -> None:
        member = ShareConsumer(self._settings)
        member.subscribe([self._topic])
        while not self._stopping.is_set():
            try:
                self._take(member, member.poll(0.2))
            except KafkaException as error:
                self._note(error)
        member.close()

    def _take(self, member: Any, messages: Iterable[Any]) -> None:
        got: dict[int, list[int]] = {}
        for each in messages:
            if each.error() is None:
                self._events.append(Delivered(each.partition(), each.offset()))
                got.setdefault(each.partition(), []).append(each.offset())
                member.acknowledge(each)
        if not got:
            return
        for place, error in member.commit_sync(timeout=30).items():
            if error is None:
                self._events += [Accepted(place.partition, offset) for offset in got.get(place.partition, ())]

    def _note(self, error: KafkaException) -> None:
        told = error.args[0]
        if told.fatal():
            self.failures.append(str(told))
            self._stopping.set()
        else:
            self._stopping.wait(0.1)


class ShareGroup(Companion):
    """The group; it reads the topic from its beginning."""

    name = "share group"

    def __init__(self, bootstrap_servers: str, topic: str, group: str) -> None:
        self._servers, self._topic, self._group = bootstrap_servers, topic, group
        self._events: list[Delivered | Accepted] = []
        # The members log in as the user of the moment; the settings of the group are an administrator's.
        self._members = [ShareMember(bootstrap_servers, topic, group, self._events) for _ in range(MEMBERS)]

    def begin(self) -> None:
        resource = ConfigResource(ResourceType.GROUP, self._group)
        with self._admin() as admin:
            change = ConfigChange("share.auto.offset.reset", "earliest")
            for error in admin.alter_configs({resource: [change]}).values():
                assert error is None, error
        for each in self._members:
            each.__enter__()
        self.await_progress()

    def await_progress(self) -> None:
        before = self._accepted()
        wait_for("the share group goes on", lambda: self._check_members() and self._accepted() > before)

    def finish(self, ends: Sequence[int]) -> Verdict:
        wanted = dict(enumerate(ends))
        # Without an end the verdict says what is missing.
        with suppress(NeverCame):
            wait_for("the share group has finished every record", partial(self._has_finished, wanted), FINISH_SECONDS)
        self.close()
        verdict = judge_share_group(self._events, wanted, self._unfinished())
        verdict.found("failures", [failure for each in self._members for failure in each.failures])
        return verdict

    def close(self) -> None:
        for each in self._members:
            if each.is_working:
                each.__exit__(None)

    def _admin(self) -> Admin:
        return Admin(self._servers, security=way_in.security)

    def _accepted(self) -> int:
        return sum(isinstance(each, Accepted) for each in tuple(self._events))

    def _check_members(self) -> bool:
        failed = [failure for each in self._members for failure in each.failures]
        assert not failed, f"a member of the share group gave up: {failed}"
        return True

    def _unfinished(self) -> dict[int, int | None]:
        with self._admin() as admin:
            found = admin.list_share_group_offsets(self._group)
        return {place.partition: each.lag for place, each in found.items() if place.topic == self._topic}

    def _has_finished(self, ends: Mapping[int, int]) -> bool:
        self._check_members()
        got = {tuple(each) for each in tuple(self._events) if isinstance(each, Delivered)}
        if any((index, offset) not in got for index, end in ends.items() for offset in range(end)):
            return False
        # The first record that the group has not finished is written late, so its lag says it better.
        left = self._unfinished()
        return left.keys() == ends.keys() and not any(left.values())

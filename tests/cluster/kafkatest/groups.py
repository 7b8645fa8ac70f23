"""Several `VerifiableConsumer`s that are one group, and what kafkatest asks of them together."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.verifiable import VerifiableConsumer
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

SESSION_MS = {"classic": 300_000, "consumer": 60_000}
"""Longer than a broker or a member takes to return, even on a busy machine; the consumer protocol allows no more than its value here."""
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


class Group:
    """Members of one group, which read one topic.

    Args:
        are_static: each has a `group.instance.id`.
        name: of the group.
        tag: of the members' files; two sets of members of one group need two.
        count: of members.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        topic: str,
        protocol: str,
        *,
        name: str,
        count: int = 3,
        are_static: bool = False,
        tag: str = "member",
        extra: dict[str, str] | None = None,
    ) -> None:
        self.name, self.protocol = name, protocol
        own = {"partition.assignment.strategy": RANGE} if protocol == "classic" else {}
        self.members = [
            VerifiableConsumer(
                cluster, folder, topic, name, protocol, name=f"{tag}-{number}", session_ms=SESSION_MS["classic"],
                instance_id=f"instance-{number}" if are_static else None, extra=own | (extra or {}),
            )
            for number in range(count)
        ]  # fmt: skip

    def __repr__(self) -> str:
        return f"<Group {self.name} {self.protocol} {len(self.joined)} of {len(self.members)} joined>"

    def keep_sessions(self, cluster: Cluster, tools: ToolProcess) -> None:
        """Set the session timeout of a group of the consumer protocol, whose members cannot set their own."""
        printed = tools.run(
            "configs", "--bootstrap-server", cluster.bootstrap_servers, "--alter", "--entity-type", "groups",
            "--entity-name", self.name, "--add-config", f"consumer.session.timeout.ms={SESSION_MS[self.protocol]}",
        )  # fmt: skip
        assert printed.startswith("exit 0"), printed

    @property
    def joined(self) -> list[VerifiableConsumer]:
        return [each for each in self.members if each.is_up and each.is_joined]

    @property
    def consumed(self) -> int:
        return sum(each.consumed for each in self.members)

    @property
    def rebalances(self) -> int:
        return sum(each.assigned_count for each in self.members)

    def owner(self) -> VerifiableConsumer:
        """Return the member that has partition 0, waiting until one has it and no other."""
        return wait_for(
            f"one of {self} has partition 0",
            lambda: owners[0] if len(owners := [each for each in self.joined if 0 in each.assignment]) == 1 else None,
        )

    def start(self) -> None:
        for each in self.members:
            each.start()

    def await_joined(self, count: int | None = None) -> None:
        """Wait until so many are members, or all, and one of them has the partition."""
        wanted = len(self.members) if count is None else count
        wait_for(f"{wanted} of {self} are members", lambda: len(self.joined) == wanted)
        self.owner()

    def await_more(self, count: int = 1) -> None:
        """Wait until the group has read so many more records."""
        goal = self.consumed + count
        wait_for(f"{self} reads {count} more records", lambda: self.consumed >= goal)

    def stop(self) -> None:
        """End all cleanly, and check what each has seen."""
        for each in self.members:
            each.stop()
        for each in self.members:
            each.check_offsets()

    def close(self) -> None:
        for each in self.members:
            each.stop(is_clean=False)

    def check_read_once(self) -> None:
        """Check that, after clean ends, no record of the partition was read twice, and each record that was read is committed."""
        committed = max(each.committed.get(0, 0) for each in self.members)
        assert committed == self.consumed, f"{self} has read {self.consumed} records, and committed {committed}"

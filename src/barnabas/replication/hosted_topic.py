"""A topic with replicas on this broker."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.log.log_config import LogConfig
from barnabas.protocol.primitives import Uuid
from barnabas.replication.partition import Partition
from barnabas.replication.topic import Topic

__all__ = ["HostedTopic"]


class HostedTopic(Topic):
    """One topic.

    Attributes:
        partitions: by index, only those with a replica here.
    """

    __slots__ = ("partitions",)

    def __init__(self, name: str, topic_id: Uuid, config_of: Callable[[str], LogConfig]) -> None:
        super().__init__(name, topic_id, config_of)
        self.partitions: dict[int, Partition] = {}

    def __repr__(self) -> str:
        return f"<HostedTopic name={self.name} partitions={len(self.partitions)}>"

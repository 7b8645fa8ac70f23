"""A topic for its replicas: its name, its settings and its traffic.

The settings are computed on first use and again after a change, because a broker has thousands of topics and most of them are idle.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.log.log_config import LogConfig
from barnabas.protocol.primitives import Uuid
from barnabas.protocol.topic_names import INTERNAL_TOPICS
from barnabas.replication.topic_traffic import TopicTraffic

__all__ = ["Topic"]


class Topic:
    """One topic.

    Attributes:
        traffic: for the metrics.
    """

    __slots__ = ("_config", "_config_of", "is_internal", "name", "topic_id", "traffic")

    def __init__(self, name: str, topic_id: Uuid, config_of: Callable[[str], LogConfig]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = name in INTERNAL_TOPICS
        self.traffic = TopicTraffic()
        self._config_of = config_of
        self._config: LogConfig | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"

    @property
    def config(self) -> LogConfig:
        if self._config is None:
            self._config = self._config_of(self.name)
        return self._config

    def config_changed(self) -> None:
        """Compute the settings again when they are needed; the caller informs the partitions."""
        self._config = None

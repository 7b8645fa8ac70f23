"""The settings of replication that may change while the broker runs: throttles, and the number of fetchers.

    broker    leader.replication.throttled.rate, follower.replication.throttled.rate           dynamic only, as in Kafka
              num.replica.fetchers                                                             dynamic or in the file
    topic     leader.replication.throttled.replicas, follower.replication.throttled.replicas

A rate of this broker is stronger than one of the whole cluster. A node alone has none of this.

Source: Kafka's `BrokerConfigHandler`, `TopicConfigHandler.updateThrottledList`, `DynamicThreadPool`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.config.config import BrokerConfig, effective_broker_value
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.quota.replication_quota_manager import NO_LIMIT, ReplicationQuotaManager, throttled_partitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.metadata.configs_image import ConfigurationsDelta
    from barnabas.replication.replica_manager import ReplicaManager

__all__ = ["ReplicationSettings"]


class ReplicationSettings:
    """Passes settings on to the replicas.

    Attributes:
        leader, follower: the quotas of this broker.
    """

    def __init__(self, config: BrokerConfig, replicas: ReplicaManager, now_ms: Callable[[], int]) -> None:
        windows = (
            config.int_value("replication.quota.window.num"),
            config.int_value("replication.quota.window.size.seconds"),
        )
        self.leader = ReplicationQuotaManager(*windows, now_ms)
        self.follower = ReplicationQuotaManager(*windows, now_ms)
        self._config = config
        self._replicas = replicas
        replicas.leader_quota, replicas.follower_quota = self.leader, self.follower
        replicas.fetchers_per_leader = config.int_value("num.replica.fetchers")

    def __repr__(self) -> str:
        return f"<ReplicationSettings leader={self.leader} follower={self.follower}>"

    def apply_delta(self, delta: ConfigurationsDelta, configs: ConfigurationsImage) -> None:
        """Apply changed settings of topics and brokers."""
        for kind, name in delta.changed:
            if kind == ConfigResourceType.TOPIC:
                self._topic_changed(name, configs.for_resource(kind, name))
            elif kind == ConfigResourceType.BROKER and name in ("", str(self._config.node_id)):
                self._broker_changed(configs)

    def _topic_changed(self, topic: str, values: Mapping[str, str]) -> None:
        for side, quota in (("leader", self.leader), ("follower", self.follower)):
            text = values.get(f"{side}.replication.throttled.replicas", "")
            entries = [entry.strip() for entry in text.split(",")]
            quota.mark_throttled(topic, throttled_partitions(entries, self._config.node_id))

    def _broker_changed(self, configs: ConfigurationsImage) -> None:
        of_cluster = configs.for_resource(ConfigResourceType.BROKER, "")
        of_broker = configs.for_resource(ConfigResourceType.BROKER, str(self._config.node_id))
        dynamic = {**of_cluster, **of_broker}
        for side, quota in (("leader", self.leader), ("follower", self.follower)):
            quota.limit = int(dynamic.get(f"{side}.replication.throttled.rate", NO_LIMIT))
        fetchers = effective_broker_value(self._config, "num.replica.fetchers", of_cluster, of_broker)
        assert isinstance(fetchers, int), "a number of fetchers"
        self._replicas.resize_fetchers(fetchers)

"""The settings that limit the moves between the directories of a broker.

    alter.log.dirs.replication.quota.window.num, .size.seconds      static
    replica.alter.log.dirs.io.max.bytes.per.second                  static, then cluster-wide dynamic, then this broker's dynamic one

Source: Kafka's `DynamicReplicaLogDirsConfig`, `QuotaFactory.instantiate`.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.config.config import BrokerConfig, value_in_force
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.quota.replication_quota_manager import ReplicationQuotaManager

__all__ = ["move_quota", "moved_bytes_per_second"]

SETTING = "replica.alter.log.dirs.io.max.bytes.per.second"


def move_quota(config: BrokerConfig, now_ms: Callable[[], int]) -> ReplicationQuotaManager:
    """Return the quota of all moves of a broker, with its static limit."""
    quota = ReplicationQuotaManager(
        config.int_value("alter.log.dirs.replication.quota.window.num"),
        config.int_value("alter.log.dirs.replication.quota.window.size.seconds"),
        now_ms,
    )
    quota.limit = config.int_value(SETTING)
    return quota


def moved_bytes_per_second(config: BrokerConfig, configs: ConfigurationsImage) -> int:
    """Return the limit as of now."""
    value = value_in_force(config, SETTING, configs)
    assert isinstance(value, int), f"{SETTING} is a number"
    return value

"""How the settings of topics and brokers reach the quotas of replication, and the fetchers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.configs_image import ConfigurationsDelta, ConfigurationsImage
from barnabas.node.replication_settings import ReplicationSettings
from barnabas.protocol.messages import ConfigRecord
from barnabas.quota.replication_quota_manager import NO_LIMIT
from tests.replication.hosting import Hosting

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


class Settings:
    def __init__(self, hosting: Hosting) -> None:
        config = BrokerConfig.from_properties({"node.id": "1", "num.replica.fetchers": "2"}, served=False)
        self.replicas = hosting.replicas
        self.settings = ReplicationSettings(config, self.replicas, hosting.now_ms)
        self.configs = ConfigurationsImage()

    def set(self, kind: ConfigResourceType, name: str, **values: str | None) -> None:
        delta = ConfigurationsDelta(self.configs)
        for key, value in values.items():
            delta.replay(ConfigRecord(resource_type=kind, resource_name=name, name=key.replace("_", "."), value=value))
        self.configs = delta.apply()
        self.settings.apply_delta(delta, self.configs)

    @property
    def limits(self) -> tuple[int, int]:
        return self.settings.leader.limit, self.settings.follower.limit


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    hosting = Hosting(tmp_path)
    yield Settings(hosting)
    hosting.close()


def test_a_rate_of_the_broker_is_stronger_than_one_of_the_cluster(settings: Settings) -> None:
    assert settings.limits == (NO_LIMIT, NO_LIMIT)
    settings.set(BROKER, "", leader_replication_throttled_rate="5")
    settings.set(BROKER, "1", leader_replication_throttled_rate="7", follower_replication_throttled_rate="9")
    settings.set(BROKER, "2", leader_replication_throttled_rate="1")
    assert settings.limits == (7, 9)
    settings.set(BROKER, "1", leader_replication_throttled_rate=None, follower_replication_throttled_rate=None)
    assert settings.limits == (5, NO_LIMIT)


def test_the_throttled_replicas_of_a_topic(settings: Settings) -> None:
    leader, follower = settings.replicas.leader_quota, settings.replicas.follower_quota
    settings.set(
        TOPIC, "t", leader_replication_throttled_replicas="0:1,1:2", follower_replication_throttled_replicas="*"
    )
    assert [leader.is_throttled("t", index) for index in (0, 1)] == [True, False]
    assert follower.is_throttled("t", 1)
    settings.set(TOPIC, "t", leader_replication_throttled_replicas=None, follower_replication_throttled_replicas=None)
    assert not leader.is_throttled("t", 0)
    assert not follower.is_throttled("t", 1)


def test_the_number_of_fetchers(settings: Settings) -> None:
    assert settings.replicas.fetchers_per_leader == 2
    settings.set(BROKER, "", num_replica_fetchers="4")
    assert settings.replicas.fetchers_per_leader == 4
    settings.set(BROKER, "", num_replica_fetchers=None)
    assert settings.replicas.fetchers_per_leader == 2

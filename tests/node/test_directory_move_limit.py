"""The limit of moves between directories: the static setting, then the cluster's, then the broker's."""

from __future__ import annotations

from barnabas.config.config import BrokerConfig
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.directory_move_limit import SETTING, move_quota, moved_bytes_per_second
from barnabas.protocol.messages import ConfigRecord


def test_the_broker_has_the_last_word() -> None:
    config = BrokerConfig.from_properties({SETTING: "3000", "listeners": "PLAINTEXT://127.0.0.1:0"}, embedded=True)
    quota = move_quota(config, lambda: 1)
    assert (quota.limit, quota.is_exceeded()) == (3000, False)
    found, image = [], MetadataImage()
    for name, value in (("", "2000"), (str(config.node_id), "1000")):
        found.append(moved_bytes_per_second(config, image.configs))
        delta = MetadataDelta(image)
        kind = ConfigResourceType.BROKER
        delta.replay(ConfigRecord(resource_type=kind, resource_name=name, name=SETTING, value=value))
        image = delta.apply()
    assert [*found, moved_bytes_per_second(config, image.configs)] == [3000, 2000, 1000]
    quota.limit = 10
    quota.record(100)
    assert quota.is_exceeded()

"""The features of brokers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.client.features import BrokerFeatures
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import every_version, only

R = messages.ApiVersionsResponse


@pytest.mark.parametrize("version", every_version(messages.ApiVersionsRequest))
def test_each_broker_has_its_own(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ApiVersionsRequest, version)

    def versions(broker_id: int, request: Any, version: int) -> R:
        if broker_id == 2:
            return R(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return R(
            supported_features=[R.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=29)],
            finalized_features_epoch=90,
            finalized_features=[
                R.FinalizedFeatureKey(name="metadata.version", max_version_level=25, min_version_level=25)
            ],
        )

    memory.handlers["ApiVersionsRequest"] = versions
    found = admin.describe_features()
    assert isinstance(found[2], KafkaError)
    old = BrokerFeatures({}, {}, -1)
    assert found[1] == (
        old if version < 3 else BrokerFeatures({"metadata.version": (7, 29)}, {"metadata.version": 25}, 90)
    )

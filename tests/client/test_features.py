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


@pytest.mark.parametrize("validate_only", [False, True])
def test_features_are_raised_all_or_none(memory: MemoryCluster, admin: Admin, validate_only: bool) -> None:
    asked: list[Any] = []
    response = messages.UpdateFeaturesResponse

    def update(broker_id: int, request: Any, version: int) -> messages.UpdateFeaturesResponse:
        asked.append(request)
        return response(
            error_message=None,
            results=[response.UpdatableFeatureResult(feature="a", error_code=int(len(asked) == 2) * 95)],
        )

    def versions(broker_id: int, request: Any, version: int) -> R:
        return R(finalized_features=[R.FinalizedFeatureKey(name="a", max_version_level=3, min_version_level=3)])

    memory.handlers["UpdateFeaturesRequest"] = update
    memory.handlers["ApiVersionsRequest"] = versions
    only(memory, messages.UpdateFeaturesRequest, 1)
    assert admin.raise_features({"a": 3}, validate_only=validate_only) is None
    (request,) = asked
    assert [(each.feature, each.max_version_level) for each in request.feature_updates] == [("a", 3)]
    assert request.validate_only == validate_only
    refused = admin.raise_features({"a": 3}, validate_only=validate_only)
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.INVALID_UPDATE_VERSION

"""DescribeCluster at a controller's listener."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeClusterRequest,
)
from tests.api.controlling import Controlling
from tests.metadata.controller_harness import CLUSTER_ID


def describe_cluster(controlling: Controlling, endpoint_type: int = 2, version: int = 2) -> Any:
    request = DescribeClusterRequest()
    if version:
        request.endpoint_type = endpoint_type
    return controlling.ask(request, version)


def test_the_controllers_are_described_by_their_registrations(controlling: Controlling) -> None:
    assert (describe_cluster(controlling).brokers, describe_cluster(controlling).controller_id) == ([], -1)
    controlling.register_controller(2)
    assert describe_cluster(controlling).controller_id == -1
    controlling.register_controller(1)
    answer = describe_cluster(controlling)
    assert (answer.cluster_id, answer.endpoint_type, answer.controller_id) == (CLUSTER_ID, 2, 1)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [(1, "c1", 9093), (2, "c2", 9093)]
    controlling.connection.listener_name = "OTHER"
    assert describe_cluster(controlling).brokers == []


@pytest.mark.parametrize(
    ("endpoint_type", "version", "code"),
    [
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (7, 2, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (1, 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_controller_describes_controllers_only(
    controlling: Controlling, endpoint_type: int, version: int, code: ErrorCode
) -> None:
    assert describe_cluster(controlling, endpoint_type, version).error_code == code

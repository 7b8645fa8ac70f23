"""DescribeCluster (API key 60, versions 0-2): the brokers and the controller.

- Lists the live brokers, with fenced ones on request, and names one of the live ones as the controller.
- Endpoint type 1 means brokers. A broker returns MISMATCHED_ENDPOINT_TYPE for 2 (controllers) and UNSUPPORTED_ENDPOINT_TYPE for any
  other type.

Version 1 adds the endpoint type (KIP-919), 2 fenced brokers (KIP-1073).
"""

from __future__ import annotations

from barnabas.api.serving.advertised import advertised_endpoint
from barnabas.api.serving.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


async def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return _wrong_type(request.endpoint_type)
    services = context.services
    brokers = []
    for broker in services.image().cluster.brokers.values():
        endpoint = advertised_endpoint(context, broker.id, include_fenced=True)
        if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        brokers.append(
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.id, host=endpoint[0], port=endpoint[1], rack=broker.rack, is_fenced=broker.fenced
            )
        )
    live = [broker.broker_id for broker in brokers if not broker.is_fenced]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.node_id if services.node_id in live else min(live, default=-1),
        brokers=brokers,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _wrong_type(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=f"Unsupported endpoint type {endpoint_type}"
    )

"""DescribeCluster (API key 60, versions 0-2) on a controller's listener: the controllers (KIP-919).

- Lists the controllers that have registered on the client's listener, and names the leader of the quorum if it is one of them.
- Endpoint type 2 means controllers. A controller returns MISMATCHED_ENDPOINT_TYPE for 1 (brokers) and UNSUPPORTED_ENDPOINT_TYPE for any
  other type; in version 0, which has no types, INVALID_REQUEST.
- Before metadata.version 3.7-IV0 controllers do not register, so UNSUPPORTED_VERSION.

Version 1 adds the endpoint type (KIP-919), 2 fenced brokers (KIP-1073).

Source: Kafka's `ControllerApis.handleDescribeCluster`, `ControllerRegistrationsPublisher`.
"""

from __future__ import annotations

from barnabas.api.serving.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from barnabas.api.serving.context import ControllerContext
from barnabas.metadata.metadata_version import CONTROLLER_REGISTRATION_SINCE
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


async def handle(context: ControllerContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    services = context.services
    image = services.image()
    if (image.features.metadata_version or 0) < CONTROLLER_REGISTRATION_SINCE:
        message = "Direct-to-controller communication is not supported with the current MetadataVersion."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    if request.endpoint_type != _CONTROLLERS:
        return _wrong_type(context.version, request.endpoint_type)
    controllers = []
    for controller in image.cluster.controllers.values():
        for endpoint in controller.listeners:
            if endpoint.name == context.connection.listener_name:
                controllers.append(
                    DescribeClusterResponse.DescribeClusterBroker(
                        broker_id=controller.id, host=endpoint.host, port=endpoint.port
                    )
                )
    leader_id = services.driver.node.leader_id
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        endpoint_type=_CONTROLLERS,
        controller_id=leader_id if any(listed.broker_id == leader_id for listed in controllers) else -1,
        brokers=controllers,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _wrong_type(version: int, endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == _BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
    else:
        code, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(
        error_code=ErrorCode.INVALID_REQUEST if version == 0 else code,
        error_message=message,
    )

"""GetTelemetrySubscriptions (API key 71, version 0): which metrics a client is to push, and how often.

- With nothing to push the list is empty, and the client asks again after the interval. `telemetry.client_metrics_manager` has the
  rules.
- The broker itself receives the metrics, where Apache Kafka needs a plugin; advertised only where `/metrics` is served, and while
  there is a subscription.

Version 0 is flexible (KIP-714).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse
from barnabas.telemetry.client_metrics_manager import ACCEPTED_COMPRESSION, ClientAttributes


async def handle(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    services = context.services
    manager = services.client_metrics()
    try:
        instance = manager.get_subscription(
            request.client_instance_id,
            client_attributes(context),
            context.connection.connection_id,
            services.now_ms(),
        )
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED_COMPRESSION),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=manager.max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )


def client_attributes(context: RequestContext) -> ClientAttributes:
    """Return the attributes of the client that subscriptions may match."""
    connection = context.connection
    return ClientAttributes(
        client_id=context.client_id,
        client_software_name=connection.client_software_name,
        client_software_version=connection.client_software_version,
        client_source_address=connection.peer_host,
        client_source_port=str(connection.peer_port),
    )

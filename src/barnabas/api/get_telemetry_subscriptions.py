"""GetTelemetrySubscriptions (key 71), version 0. Control plane.

- Answers which metrics this client shall push and how often; nothing to push is an empty list, and the client asks again after
  the interval. See `telemetry.client_metrics_manager` for who gets what.
- The broker itself is the receiver, where Apache Kafka needs a plugin; advertised only while `/metrics` is served.

v0 flexible. KIP-714.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse
from barnabas.telemetry.client_metrics_manager import ACCEPTED_COMPRESSION, ClientAttributes


def handle(context: RequestContext, request: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
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
    """What subscriptions may match of the client behind a request."""
    connection = context.connection
    return ClientAttributes(
        client_id=context.client_id,
        client_software_name=connection.client_software_name,
        client_software_version=connection.client_software_version,
        client_source_address=connection.peer_host,
        client_source_port=str(connection.peer_port),
    )

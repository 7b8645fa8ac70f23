"""PushTelemetry (key 72), version 0. Control plane.

- Takes a client's metrics, compressed or not, and keeps the newest values for `/metrics`.
- A push too early is THROTTLING_QUOTA_EXCEEDED, one for an outdated subscription UNKNOWN_SUBSCRIPTION_ID, one that is too large
  TELEMETRY_TOO_LARGE, one that cannot be read INVALID_RECORD; after a last one (`terminating`) no other: INVALID_REQUEST.

v0 flexible. KIP-714.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.api.get_telemetry_subscriptions import client_attributes
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import PushTelemetryRequest, PushTelemetryResponse


def handle(context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    services = context.services
    try:
        services.client_metrics().push(
            request.client_instance_id,
            client_attributes(context),
            context.connection.connection_id,
            subscription_id=request.subscription_id,
            is_terminating=request.terminating,
            codec=request.compression_type,
            payload=request.metrics,
            now_ms=services.now_ms(),
        )
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()

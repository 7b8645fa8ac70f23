"""PushTelemetry (API key 72, version 0): store a client's metrics.

- Keeps the newest values for `/metrics`, whatever their compression.
- A push before its time is THROTTLING_QUOTA_EXCEEDED, one for an outdated subscription UNKNOWN_SUBSCRIPTION_ID, one that is too large
  TELEMETRY_TOO_LARGE, one that does not parse INVALID_RECORD. After the last push of a client (`terminating`) another is
  INVALID_REQUEST.

Version 0 is flexible (KIP-714).
"""

from __future__ import annotations

from barnabas.api.get_telemetry_subscriptions import client_attributes
from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import PushTelemetryRequest, PushTelemetryResponse


async def handle(context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
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

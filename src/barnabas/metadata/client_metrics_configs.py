"""The valid settings of a client metrics subscription.

A subscription names metrics, an interval, and patterns that choose clients, such as `client_software_name=librdkafka.*`.

Source: Kafka's `ClientMetricsConfigs.validate`; KIP-714.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from barnabas.protocol.errors import ErrorCode, KafkaError

INTERVAL_MS = range(100, 3_600_000 + 1)
MATCH_KEYS = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def refuse_unknown(known: Collection[str], values: Mapping[str, str]) -> None:
    for name in values:
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")


def check_subscription(values: Mapping[str, str]) -> None:
    """Check what the types of the settings leave open.

    Raises:
        KafkaError: INVALID_REQUEST for an interval out of bounds, INVALID_CONFIG for an invalid pattern.
    """
    interval = values.get("interval.ms")
    if interval is not None and int(interval) not in INTERVAL_MS:
        message = f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    for pattern in filter(None, (part.strip() for part in values.get("match", "").split(","))):
        name, separator, expression = pattern.partition("=")
        if not separator or name.strip() not in MATCH_KEYS or not _compiles(expression.strip()):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True

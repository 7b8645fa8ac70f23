"""The valid settings of a client metrics subscription.

A subscription names metrics, an interval, and patterns that choose clients, such as `client_software_name=librdkafka.*`. A pattern is an
RE2 expression for the whole attribute; Kafka's is Java's.

Source: Kafka's `ClientMetricsConfigs.validate`; KIP-714.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.regular_expressions import InvalidExpression, RegularExpression, compiled

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
    parse_match(values.get("match", ""))


def parse_match(text: str) -> dict[str, RegularExpression]:
    """Read the setting `match`: an expression for each attribute of a client.

    Raises:
        KafkaError: INVALID_CONFIG for an unknown attribute or an invalid pattern.
    """
    match = {}
    for pattern in filter(None, (part.strip() for part in text.split(","))):
        # As Java's `split` does, empty texts at the end do not count.
        name, *expressions = pattern.rstrip("=").split("=")
        if len(expressions) != 1 or name.strip() not in MATCH_KEYS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
        try:
            match[name.strip()] = compiled(expressions[0].strip())
        except InvalidExpression:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}") from None
    return match

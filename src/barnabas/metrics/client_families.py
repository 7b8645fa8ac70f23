"""The metrics that clients pushed (KIP-714), under the clients' names.

`org.apache.kafka.consumer.poll.idle.ratio.avg` becomes `org_apache_kafka_consumer_poll_idle_ratio_avg`, with the labels
client_instance_id, client_id, software_name, software_version, and the client's own labels. The name of a sum ends in `_total`.

Source: KIP-714; the naming rules of prometheus.io for OpenTelemetry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from barnabas.metrics.exposition import Family, family, labels
from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

__all__ = ["families"]

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_]")
_OWN_LABELS = ("client_instance_id", "client_id", "software_name", "software_version")


def families(manager: ClientMetricsManager) -> Iterator[Family]:
    """Yield the broker's counts of telemetry and every metric that clients pushed."""
    counts: tuple[tuple[str, str, str, int], ...] = (
        ("instance_count", "gauge", "Known client instances.", manager.instance_count),
        (
            "throttle_total",
            "counter",
            "Requests rejected because they came before their interval was over.",
            manager.throttles,
        ),
        (
            "unknown_subscription_request_total",
            "counter",
            "Pushes rejected because their subscription has changed.",
            manager.unknown_subscriptions,
        ),
        ("export_total", "counter", "Pushes accepted.", manager.exports),
        ("error_total", "counter", "Pushes that could not be read.", manager.export_errors),
        ("dropped_total", "counter", "Pushed values dropped because a bound was reached.", manager.pushed.dropped),
    )
    for name, kind, text, value in counts:
        yield family(f"kafka_server_client_metrics_{name}", kind, text, [("", value)])
    for pushed, values in sorted(manager.pushed.by_name().items()):
        for is_sum in (False, True):
            samples: dict[str, float] = {}
            for pusher, attributes, value_, was_sum in values:
                if was_sum is is_sum:
                    given = {_name(key): text for key, text in attributes}
                    tags = labels({**given, **dict(zip(_OWN_LABELS, pusher, strict=True))})
                    samples[tags] = value_
            suffix, kind = ("_total", "counter") if is_sum else ("", "gauge")
            name = _name(pushed)
            name = name if name.endswith(suffix) else name + suffix
            yield family(name, kind, "Pushed by clients.", samples.items())


def _name(text: str) -> str:
    """Return a name that Prometheus allows."""
    name = _NOT_ALLOWED.sub("_", text)
    return f"_{name}" if not name or name[0].isdigit() else name

"""The marker of a clean stop, `.kafka_cleanshutdown`.

    {"version":0,"brokerEpoch":42}

`brokerEpoch` is the epoch that the controller gave to the broker that stopped. At its next registration the broker names it, which
proves to the controller that the broker has not crashed since: its replicas have lost nothing. Before Kafka 3.9 the file was empty.

Source: Kafka's `CleanShutdownFileHandler`; KIP-966.
"""

from __future__ import annotations

import json

from barnabas.log.log_config import INT64_MAX

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
UNKNOWN_EPOCH = -1


def encode(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode(content: bytes) -> int:
    """Return the broker epoch, -1 if the file names none: any content marks a clean stop."""
    try:
        fields = json.loads(content)
    except ValueError:
        return UNKNOWN_EPOCH
    epoch = fields.get("brokerEpoch") if isinstance(fields, dict) else None
    if isinstance(epoch, int) and not isinstance(epoch, bool) and 0 <= epoch <= INT64_MAX:
        return epoch
    return UNKNOWN_EPOCH

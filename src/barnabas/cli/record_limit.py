"""How large a record may be, and the error for a larger one.

A topic's `max.message.bytes` limits a batch as it is written, after compression. librdkafka does not know it: it fills batches up to
its own `batch.size`, the broker rejects such a batch, and every record in it fails as "Message too large". So `produce` asks for the
limit first, and keeps batches of several records below it. Then the broker rejects only single large records, which the error can name.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.admin import Admin
from barnabas.client.configs import ConfigResource, ResourceType
from barnabas.client.outcome import result

SETTING = "max.message.bytes"
DEFAULT_BYTES = 1_000_000
"""librdkafka's default of both `message.max.bytes` and `batch.size`."""
_LARGEST_BYTES = 1_000_000_000
_ROUND_BYTES = 1_000
_LEAST_OVERHEAD_BYTES = 68
_OVERHEAD_BYTES = 512
"""A batch of one record adds at least the former to key, value and headers, and less than the latter."""


def topic_limit(admin: Admin, topic: str) -> int | None:
    """Return the topic's `max.message.bytes`, or None if the broker does not return it.

    Raises:
        KafkaError: the broker rejects the request.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = result(admin.describe_configs([resource], names=[SETTING])[resource])
    values = [entry.value for entry in entries if entry.name == SETTING and entry.value]
    return int(values[0]) if values else None


def batch_settings(limit_bytes: int | None, given: Mapping[str, str]) -> dict[str, int]:
    """Return librdkafka's settings for a topic with this limit, without those that the user has given."""
    if limit_bytes is None:
        return {}
    settings = {
        "batch.size": max(1, min(DEFAULT_BYTES, limit_bytes)),
        # The library's own limit counts bytes before compression: it must not reject a record that the broker would accept.
        "message.max.bytes": min(max(DEFAULT_BYTES, limit_bytes), _LARGEST_BYTES),
    }
    return {name: value for name, value in settings.items() if name not in given}


def too_large(topic: str, number: int, size: int, limit_bytes: int | None, *, local: bool) -> tuple[str, str | None]:
    """Return the sentence that names the record, and the hint.

    Args:
        number: of the record in the input; 0 if it is not known.
        size: bytes of the record's key, value and headers.
        limit_bytes: the topic's limit; None if it is not known.
        local: the library rejected the record; else the broker did.
    """
    limit = f"{SETTING}={limit_bytes}" if limit_bytes is not None else SETTING
    enough = -(-(size + _OVERHEAD_BYTES) // _ROUND_BYTES) * _ROUND_BYTES
    record = f"record {number} has {size} bytes"
    if limit_bytes is None or size + _LEAST_OVERHEAD_BYTES > limit_bytes:
        raised = f"`barnabas topic alter {topic} -c {SETTING}={enough}`"
        return f"{record}, more than topic {topic} accepts ({limit})", raised
    if local:
        return f"{record}, more than this client sends (message.max.bytes)", f"-X message.max.bytes={enough}"
    return f"a batch has more bytes than topic {topic} accepts ({limit})", f"-X batch.size={limit_bytes}"

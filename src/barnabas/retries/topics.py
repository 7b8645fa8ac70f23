"""The topics that a policy needs: created if they do not exist, with as many partitions as the source topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.retries.policy import RetryPolicy

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_TIMEOUT_SECONDS = 30.0
_LEAST_RETENTION_MS = 7 * 86_400_000
_DELAYS_KEPT = 10
"""A retry topic keeps its records for at least this many delays."""


class MissingTopic(Exception):
    """A source topic does not exist."""


def ensure_topics(admin: AdminClient, sources: Sequence[str], policy: RetryPolicy) -> dict[str, int]:
    """Create the policy's topics that do not exist.

    Returns:
        How many partitions each source topic, retry topic and dead-letter topic has.

    Raises:
        MissingTopic: a source topic does not exist.
        KafkaException: the broker rejects a request.
    """
    # The caller has the library; executors of Spark import this module without it.
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    found = _partitions(admin)
    for source in sources:
        if source not in found:
            raise MissingTopic(f"topic {source} does not exist: create it first")
    most = max(found[source] for source in sources)
    wanted = [
        NewTopic(topic, num_partitions=most, config=topic_settings(policy, topic))
        for topic in (*policy.retry_topics, policy.dead_letter)
        if topic not in found
    ]
    for topic, created in (admin.create_topics(wanted) if wanted else {}).items():
        try:
            created.result()
            found[topic] = most
        except KafkaException as failure:
            # Another member of the group was faster.
            if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            found[topic] = _partitions(admin).get(topic, most)
    return {topic: found[topic] for topic in (*sources, *policy.retry_topics, policy.dead_letter)}


def topic_settings(policy: RetryPolicy, topic: str) -> dict[str, str]:
    """Return the settings of one of the policy's topics: how long it keeps its records."""
    retry = policy.retry_of(topic)
    if not retry:
        return {"retention.ms": "-1"}  # dead letters stay until somebody purges them
    return {"retention.ms": str(max(_LEAST_RETENTION_MS, _DELAYS_KEPT * policy.delay_ms(retry)))}


def _partitions(admin: AdminClient) -> dict[str, int]:
    topics = admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
    return {name: len(each.partitions) for name, each in topics.items() if each.error is None}

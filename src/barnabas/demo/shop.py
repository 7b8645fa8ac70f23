"""The shop's topics: for each its key, partitions, delivery guarantee, retention and clean-up policy.

Plane: control, pure. The argument behind every number stands in `docs/demo.md`; the tests assert each choice.

| topic | events a day | key | partitions | guarantee | kept |
|---|---|---|---|---|---|
| `orders` | 50,000 | order | 6 | at least once | 30 days, then deleted |
| `payments` | 100,000 | payment | 6 | exactly once | 180 days, then deleted |
| `inventory` | 200,000 | stock code | 12 | exactly once | the latest level of each stock code, for ever |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

DAY_MS = 86_400_000


class Guarantee(Enum):
    """How often an event may take effect."""

    AT_LEAST_ONCE = "at least once"
    EXACTLY_ONCE = "exactly once"


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic as it is created, and what its writers and readers hold to."""

    name: str
    key: str
    partitions: int
    guarantee: Guarantee
    cleanup_policy: str
    retention_ms: int
    events: tuple[str, ...]
    more_config: Mapping[str, str]

    @property
    def config(self) -> dict[str, str]:
        """The topic's configuration under Kafka's names."""
        return {
            "cleanup.policy": self.cleanup_policy,
            "retention.ms": str(self.retention_ms),
            "min.insync.replicas": "1",
            **self.more_config,
        }

    @property
    def producer_config(self) -> dict[str, str]:
        """What a producer of this topic must set for the guarantee to hold.

        An idempotent producer's retries are recognised by the broker, so that even the topics that tolerate repeated
        events do not get any from the producer; `acks=all` and the partitioner that Java clients use go with it.
        """
        return {"enable.idempotence": "true", "acks": "all", "partitioner": "murmur2_random"}


ORDERS = TopicPlan(
    name="orders",
    key="order",
    partitions=6,
    guarantee=Guarantee.AT_LEAST_ONCE,
    cleanup_policy="delete",
    retention_ms=30 * DAY_MS,
    events=("order.created", "order.cancelled"),
    more_config={},
)

PAYMENTS = TopicPlan(
    name="payments",
    key="payment",
    partitions=6,
    guarantee=Guarantee.EXACTLY_ONCE,
    cleanup_policy="delete",
    retention_ms=180 * DAY_MS,
    events=("payment.initiated", "payment.completed", "payment.failed", "payment.refunded"),
    more_config={},
)

INVENTORY = TopicPlan(
    name="inventory",
    key="stock_code",
    partitions=12,
    guarantee=Guarantee.EXACTLY_ONCE,
    cleanup_policy="compact",
    retention_ms=-1,
    events=("stock.updated", "stock.reserved", "stock.released"),
    # A reader that is a day behind still sees every movement, not only the last level.
    more_config={"min.compaction.lag.ms": str(DAY_MS)},
)

TOPICS = (ORDERS, PAYMENTS, INVENTORY)


def create_topics(bootstrap_servers: str, plans: Iterable[TopicPlan] = TOPICS) -> None:
    """Create the topics that are not there yet, with one replica as the demo has one broker.

    Raises:
        confluent_kafka.KafkaException: the broker refused one, for another reason than that it exists.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    # The library prints from level 6 on, about matters of its own.
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    topics = [NewTopic(p.name, p.partitions, replication_factor=1, config=p.config) for p in plans]
    for created in admin.create_topics(topics, request_timeout=30).values():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

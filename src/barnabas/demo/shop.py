"""The shop's topics: for each its key, partitions, delivery guarantee, retention and clean-up policy.

`docs/demo.md` gives the reason for every number; the tests assert each choice.

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

from barnabas.client.admin import LATEST, TopicPartition, results
from barnabas.client.topics import replicated
from barnabas.demo.shop_broker import ShopBroker

DAY_MS = 86_400_000


class Guarantee(Enum):
    """How often an event may take effect."""

    AT_LEAST_ONCE = "at least once"
    EXACTLY_ONCE = "exactly once"


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic's configuration, and what its writers and readers guarantee."""

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
            **self.more_config,
        }

    @property
    def producer_config(self) -> dict[str, str]:
        """The settings that a producer of this topic needs for the guarantee.

        The broker recognises an idempotent producer's retries, so even topics that tolerate repeated events get none
        from the producer. `acks=all` is required for that; the partitioner is that of Java clients.
        """
        return {"enable.idempotence": "true", "acks": "all", "partitioner": "murmur2_random"}


ORDERS = TopicPlan(
    name="orders",
    key="order",
    partitions=6,
    guarantee=Guarantee.AT_LEAST_ONCE,
    cleanup_policy="delete",
    retention_ms=30 * DAY_MS,
    events=("order.created", "order.updated", "order.cancelled"),
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
    # A reader up to a day behind still sees every movement, not only the last level.
    more_config={"min.compaction.lag.ms": str(DAY_MS)},
)

TOPICS = (ORDERS, PAYMENTS, INVENTORY)

SENT = ("revenue", "alerts", "orders.dlq")
"""The topics that the pipeline writes."""
_SENT_PARTITIONS = 3


def records_per_partition(broker: ShopBroker) -> dict[tuple[str, int], int]:
    """Return how many records each partition of the shop's topics has; those without any are left out.

    Raises:
        KafkaError: the broker does not answer, or rejected the question.
    """
    with broker.admin() as admin:
        names = {plan.name for plan in TOPICS}
        partitions = [
            TopicPartition(topic.name, each.partition)
            for topic in admin.list_topics()
            if topic.name in names
            for each in topic.partitions
        ]
        ends = results(admin.list_offsets(dict.fromkeys(partitions, LATEST)))
    return {(at.topic, at.partition): end.offset for at, end in ends.items() if end.offset}


def filled_topics(broker: ShopBroker) -> list[str]:
    """Return the topics that have records already; the results would count these too.

    Raises:
        KafkaError: the broker does not answer, or rejected the question.
    """
    filled = {name for name, _ in records_per_partition(broker)}
    return [plan.name for plan in TOPICS if plan.name in filled]


def create_topics(broker: ShopBroker, plans: Iterable[TopicPlan] = TOPICS) -> None:
    """Create the topics that do not exist yet, with three replicas if there are three brokers.

    Raises:
        KafkaError: no broker answers, or it rejected a topic.
    """
    with broker.admin() as admin:
        brokers = len(admin.cluster.nodes())
        for plan in plans:
            admin.create_if_absent(replicated(plan.name, plan.partitions, brokers, plan.config))
        for name in SENT:
            admin.create_if_absent(replicated(name, _SENT_PARTITIONS, brokers, {}))

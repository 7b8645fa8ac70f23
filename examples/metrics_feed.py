"""A feed of measurements with acks=0: at most once, and what a dying broker costs.

    python examples/metrics_feed.py

Sensor values and page views come in large numbers, a single one matters little, and none needs an order. So they have no
key, which lets the producer fill whole batches, and acks=0: the producer sends, and waits for no answer.

The price is counted here, on a broker that this program starts and kills. The broker stands still, as on a disk that
hangs, while the feed goes on. Then it dies (SIGKILL) and starts again:

- With acks=0 the measurements of that time are gone. The producer was told that each of them was delivered, because it
  had written them to its socket.
- With acks=1 the producer keeps what was not answered, and sends it again. Nothing is lost. A measurement whose answer
  was lost is written twice, unless the producer is idempotent.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

import barnabas

PARTITIONS = 3
MEASUREMENTS = 1000
"""Of each of three times: before the broker stands still, meanwhile, and after it has started again."""
PATIENCE_SECONDS = 60


class Outcome(NamedTuple):
    """Counts of measurements: delivered as the producer was told, in the topic, and the difference."""

    told: int
    kept: int
    lost: int
    twice: int


class Feed:
    """Sends numbered measurements without keys.

    Args:
        bootstrap: the cluster's address.
        topic: where to.
        acks: "0" or "1".
    """

    def __init__(self, bootstrap: str, topic: str, acks: str) -> None:
        self.told: set[str] = set()
        self._topic = topic
        self._next = 0
        # At most once: what may have arrived is not sent again.
        retries = {"message.send.max.retries": 0} if acks == "0" else {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
            | retries
        )

    def send(self, count: int) -> None:
        """Hand so many measurements to the producer."""
        for number in range(self._next, self._next + count):
            self._producer.produce(self._topic, str(number), on_delivery=self._delivered)
            self._producer.poll(0)
        self._next += count

    def settle(self, seconds: float) -> int:
        """Wait until the producer has told the end of each measurement; return how many are left after this time."""
        left: int = self._producer.flush(seconds)
        return left

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.told.add(message.value().decode())


def outage(cluster: barnabas.Cluster, topic: str, acks: str) -> Outcome:
    """Send measurements to a broker that stands still and dies; return what became of them."""
    cluster.create_topic(topic, PARTITIONS)
    feed = Feed(cluster.bootstrap_servers, topic, acks)
    feed.send(MEASUREMENTS)
    feed.settle(PATIENCE_SECONDS)
    kept_at_last(cluster.bootstrap_servers, topic, 0)
    cluster.pause(1)
    feed.send(MEASUREMENTS)
    feed.settle(1)
    cluster.kill(1)
    cluster.restart(1)
    feed.send(MEASUREMENTS)
    if feed.settle(PATIENCE_SECONDS):
        raise TimeoutError(f"{topic}: the feed did not end within {PATIENCE_SECONDS} s")
    last = kept_at_last(cluster.bootstrap_servers, topic, 2 * MEASUREMENTS)
    return Outcome(len(feed.told), len(last), len(feed.told - last.keys()), last.total() - len(last))


def kept_at_last(bootstrap: str, topic: str, first: int) -> Counter[str]:
    """Return what the topic has when it has all measurements of the last time, or when patience ends.

    With acks=0 the producer is done before the broker is.
    """
    wanted = {str(number) for number in range(first, first + MEASUREMENTS)}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not wanted <= (found := kept(bootstrap, topic)).keys() and time.monotonic() < deadline:
        pass
    return found


def kept(bootstrap: str, topic: str) -> Counter[str]:
    """Return how often each measurement is in the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: Counter[str] = Counter()
    ends: set[int] = set()
    while len(ends) < PARTITIONS:
        message = consumer.poll(PATIENCE_SECONDS)
        if message is None:
            raise TimeoutError(f"{topic}: no answer within {PATIENCE_SECONDS} s")
        if message.error() is None:
            found[message.value().decode()] += 1
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ends.add(message.partition())
        else:
            raise KafkaException(message.error())
    consumer.close()
    return found


def main() -> None:
    """Count with acks=0 and with acks=1."""
    print(f"{'acks':<6}{'told':>8}{'kept':>8}{'lost':>8}{'twice':>8}")
    with barnabas.Cluster(1) as cluster:
        for acks in ("0", "1"):
            print(f"{acks:<6}" + "".join(f"{count:>8,}" for count in outage(cluster, f"measured-{acks}", acks)))


if __name__ == "__main__":
    if len(sys.argv) != 1:
        sys.exit("usage: python examples/metrics_feed.py")
    main()

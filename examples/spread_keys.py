"""Four keys for the same clicks, and what each does to the partitions.

    python examples/spread_keys.py localhost:9092

Seven of ten clicks are on one ad. With the ad as key, one partition gets them all, and one consumer. Three keys spread
them, each at a price:

- ad and region, a composite key: the clicks of an ad in one region stay in order;
- ad and minute, a time bucket: the clicks of an ad within one minute stay in order. At any moment one partition is the
  hot one, but it is another one each minute;
- the ad, with a salt for the hot ad only: spread at every moment, no order among its clicks. The reader takes the salt
  away and adds the parts up.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.salted_keys import SaltedKeys

PARTITIONS = 6
HOT_AD = "ad-1"
PATIENCE_SECONDS = 60


class Click(NamedTuple):
    ad: str
    region: str
    minute: int


def clicks(count: int, seed: int = 1) -> list[Click]:
    """Return clicks of an hour: seven of ten on one ad, the others on forty."""
    chance = random.Random(seed)
    return [
        Click(
            HOT_AD if chance.random() < 0.7 else f"ad-{chance.randrange(2, 42)}",
            f"region-{chance.randrange(20)}",
            number * 60 // count,
        )
        for number in range(count)
    ]


def choices() -> dict[str, Callable[[Click], str | bytes]]:
    """Return a key for a click, by the name of the topic that gets it."""
    salts = SaltedKeys({HOT_AD: PARTITIONS * 2})
    return {
        "clicks-by-ad": lambda click: click.ad,
        "clicks-by-ad-and-region": lambda click: f"{click.ad} {click.region}",
        "clicks-by-ad-and-minute": lambda click: f"{click.ad} {click.minute}",
        "clicks-by-salted-ad": lambda click: salts.salted(click.ad),
    }


def send(bootstrap: str, topic: str, found: Iterable[Click], key: Callable[[Click], str | bytes]) -> None:
    """Create the topic, and produce the clicks."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS)]).values():
        created.result(PATIENCE_SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap})
    for click in found:
        producer.produce(topic, click.region, key(click))
        producer.poll(0)
    if producer.flush(PATIENCE_SECONDS):
        raise TimeoutError(f"{topic}: not every click was acknowledged within {PATIENCE_SECONDS} s")


def loads(bootstrap: str, topic: str) -> list[int]:
    """Return the number of records of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "loads"})
    partitions = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(each, PATIENCE_SECONDS)[1] for each in partitions]
    consumer.close()
    return ends


def clicks_per_ad(bootstrap: str, topic: str, ad: Callable[[bytes], str]) -> Counter[str]:
    """Return the number of clicks on each ad; `ad` finds the ad in a record's key."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: Counter[str] = Counter()
    wanted = sum(loads(bootstrap, topic))
    while found.total() < wanted:
        message = consumer.poll(PATIENCE_SECONDS)
        if message is None or message.error():
            raise RuntimeError(f"{topic}: {message.error() if message else 'no record'}")
        found[ad(message.key())] += 1
    consumer.close()
    return found


def main(bootstrap: str) -> None:
    """Send the clicks with each key, and print the partitions' loads and the clicks on the hot ad."""
    salts = SaltedKeys({HOT_AD: PARTITIONS * 2})
    found = clicks(10_000)
    print(f"{'topic':<24} {'largest share':>13} {'clicks on ' + HOT_AD:>15}  records of each partition")
    for topic, key in choices().items():
        send(bootstrap, topic, found, key)
        each = loads(bootstrap, topic)
        hot = clicks_per_ad(bootstrap, topic, lambda key: salts.original(key.split(b" ")[0]).decode())[HOT_AD]
        print(f"{topic:<24} {max(each) / sum(each):>13.0%} {hot:>15,}  {each}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/spread_keys.py BOOTSTRAP-SERVERS")
    main(sys.argv[1])

from __future__ import annotations

import click
import pytest
from confluent_kafka import Producer

from barnabas.cli.failure import Failure
from barnabas.cli.log_places import places_of
from barnabas.client.admin import Admin, result
from barnabas.client.offsets import READ_COMMITTED
from barnabas.embedded.broker import Broker

HOUR_MS = 3_600_000
BEGAN_MS = 1_700_000_000_000


@pytest.fixture
def admin(barnabas: Broker) -> Admin:
    """A topic with six records, an hour apart, in two partitions; then a cut, and a record in each that is not committed."""
    barnabas.create_topic("orders", partitions=2)
    settings = {"bootstrap.servers": barnabas.bootstrap_servers}
    producer = Producer(settings)
    for number in range(6):
        producer.produce("orders", b"x", partition=number % 2, timestamp=BEGAN_MS + number * HOUR_MS)
    assert producer.flush(30) == 0
    found = Admin(barnabas.bootstrap_servers)
    found.store_cut("release", found.take_cut(["orders"], now_ms=BEGAN_MS))
    return found


@pytest.mark.slow
def test_places(admin: Admin, barnabas: Broker) -> None:
    source = result(admin.describe_topics(["orders"])["orders"])
    transactional = Producer({"bootstrap.servers": barnabas.bootstrap_servers, "transactional.id": "open"})
    transactional.init_transactions()
    transactional.begin_transaction()
    transactional.produce("orders", b"open", partition=0)
    transactional.flush()

    def places(begin: str, end: str | None = None, **named: int) -> list[tuple[int, int]]:
        return list(places_of(admin, source, begin, end, **named).values())

    assert places("start") == [(0, 4), (0, 3)]
    assert places("start", isolation=READ_COMMITTED) == [(0, 3), (0, 3)]
    assert places("1", "2") == [(1, 2), (1, 2)]
    assert places("1:2") == [(1, 2), (1, 2)]
    assert places("release") == [(3, 4), (3, 3)]
    assert places("start", "release") == [(0, 3), (0, 3)]
    assert places("2023-11-15T00:30:00Z", "@2023-11-15T01:30:00Z") == [(2, 2), (1, 2)]
    assert places("-1", "9") == [(3, 4), (2, 3)]
    assert places("2", "1") == [(1, 1), (1, 1)]
    transactional.abort_transaction()
    with pytest.raises(Failure, match="cut relaese does not exist; did you mean release"):
        places("start", "relaese")
    with pytest.raises(click.UsageError, match="leave out --to"):
        places("1:2", "3")
    with pytest.raises(click.BadParameter, match="it is a range"):
        places("start", "1:2")
    with pytest.raises(click.BadParameter, match="is not a valid offset"):
        places("start", "a b")

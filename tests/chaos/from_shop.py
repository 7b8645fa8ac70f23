"""What the tables and topics of a shop hold, in the form of `from_lines`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from barnabas.demo.shop import TOPICS, records_per_partition
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.tables import read_table
from tests.chaos.from_lines import FromLines, Rows

if TYPE_CHECKING:
    from run_pipelines import Shop

_SHOWN = 5
QUESTIONS: dict[str, tuple[str, Callable[..., tuple[Any, ...]]]] = {
    "revenue_by_minute": (
        "minute, country, revenue, lines",
        lambda minute, country, revenue, lines: (_at(minute), country, _thousandths(revenue), int(lines)),
    ),
    "revenue_by_day": (
        "day, revenue, lines",
        lambda day, revenue, lines: (date.fromisoformat(day), _thousandths(revenue), int(lines)),
    ),
    "revenue_by_country": (
        "country, revenue, lines",
        lambda country, revenue, lines: (country, _thousandths(revenue), int(lines)),
    ),
    "best_sellers": (
        "stock_code, pieces, revenue",
        lambda code, pieces, revenue: (code, int(pieces), _thousandths(revenue)),
    ),
    "stock": (
        "stock_code, level, delivered",
        lambda code, level, delivered: (code, int(level), int(delivered)),
    ),
    "payments": (
        "payment, order_id, event, attempt, amount",
        lambda payment, order, event, attempt, amount: (payment, order, event, int(attempt), _thousandths(amount)),
    ),
    "suspicious_orders": (
        "kind, order_id, line, cancelled_at",
        lambda kind, order, line, at: (kind, order, int(line), None if at == "NULL" else _at(at)),
    ),
    "rejected_by_reason": ("reason, lines", lambda reason, lines: (reason, int(lines))),
}
"""For each answer in SQL its columns, and how a row of `spark-sql` is read."""


class Comparison(NamedTuple):
    """What one table, answer or topic must hold, and what it holds."""

    name: str
    wanted: Rows
    found: Rows

    @property
    def missing(self) -> Rows:
        return self.wanted - self.found

    @property
    def unexpected(self) -> Rows:
        """What is there although it should not be, or twice."""
        return self.found - self.wanted

    @property
    def is_equal(self) -> bool:
        return self.wanted == self.found

    def __str__(self) -> str:
        counts = (each.total() for each in (self.wanted, self.found, self.missing, self.unexpected))
        return f"{self.name:34}" + "".join(f"{count:>12,}" for count in counts)

    def examples(self) -> list[str]:
        """Return a few of the differences as lines."""
        return [
            f"  {self.name}, {what}: {', '.join(map(str, row))}"
            for what, rows in (("missing", self.missing), ("unexpected", self.unexpected))
            for row in list(rows.elements())[:_SHOWN]
        ]


HEADER = f"{'':34}" + "".join(f"{name:>12}" for name in ("the lines", "found", "missing", "unexpected"))


def comparisons(shop: Shop, wanted: FromLines) -> list[Comparison]:
    """Compare everything: the tables, the answers in SQL, and the topics as readers of committed records see them."""
    tables, servers = shop.folder / "spark-warehouse" / "live.db", shop.servers
    windows = _windows(tables)
    closed = wanted.revenue_by_minute(max((row[0] for row in windows), default=datetime.min))
    return [
        *_from_topics(tables, servers, wanted),
        Comparison("table revenue_windows, closed", closed, windows),
        Comparison("table alerts", wanted.suspicious_orders(), _alerts(tables)),
        Comparison("topic revenue", closed, _sent_revenue(servers)),
        Comparison("topic alerts", wanted.suspicious_orders(), _sent_alerts(servers)),
        Comparison("topic orders.dlq", wanted.rejected(), _dead_letters(servers)),
        *_answers(shop, "live", wanted),
    ]


def declarative_comparisons(shop: Shop, wanted: FromLines) -> list[Comparison]:
    """Compare every table and answer of the declarative form, which sends nothing to topics."""
    tables = shop.folder / "spark-warehouse"
    return [*_from_topics(tables, shop.servers, wanted), *_answers(shop, "default", wanted)]


def _from_topics(tables: Path, servers: str, wanted: FromLines) -> list[Comparison]:
    return [
        Comparison("table checked_orders", wanted.checked_orders(), _checked_orders(tables)),
        *_places(tables, servers),
        Comparison("table payment_events", wanted.payment_events(), _payment_events(tables)),
        Comparison("table stock_events", wanted.stock_events(), _stock_events(tables)),
    ]


def _places(tables: Path, servers: str) -> list[Comparison]:
    """Compare the offsets in the tables with those of the topics: each record is there once."""
    ends = records_per_partition(ShopBroker(servers))
    pairs = zip(("orders", "payments", "inventory"), ("checked_orders", "payment_events", "stock_events"), strict=True)
    assert {plan.name for plan in TOPICS} == {"orders", "payments", "inventory"}
    return [
        Comparison(
            f"offsets in {name}",
            Counter((number, offset) for (each, number), end in ends.items() if each == topic for offset in range(end)),
            _rows(tables / name, "partition", "offset"),
        )
        for topic, name in pairs
    ]


def _rows(folder: Path, *columns: str) -> Rows:
    table = read_table(folder, columns)
    return Counter() if table is None else Counter(zip(*(table[name].to_pylist() for name in columns), strict=True))


def _checked_orders(tables: Path) -> Rows:
    found = _rows(tables / "checked_orders", "text", "reason", "amount")
    # A rejected line may have an amount, as one with a negative price; it counts nowhere.
    return Counter((text, reason, None if reason else _whole(amount)) for text, reason, amount in found.elements())


def _payment_events(tables: Path) -> Rows:
    found = _rows(tables / "payment_events", "event", "payment", "attempt", "amount").elements()
    return Counter((event, payment, attempt, _whole(amount)) for event, payment, attempt, amount in found)


def _stock_events(tables: Path) -> Rows:
    return _rows(tables / "stock_events", "event", "stock_code", "level", "delivered")


def _windows(tables: Path) -> Rows:
    found = _rows(tables / "revenue_windows", "minute", "country", "revenue", "lines").elements()
    return Counter((_plain(minute), country, _whole(revenue), lines) for minute, country, revenue, lines in found)


def _alerts(tables: Path) -> Rows:
    found = _rows(tables / "alerts", "kind", "order_id", "line", "cancelled_at").elements()
    return Counter((kind, order, line, None if at is None else _plain(at)) for kind, order, line, at in found)


def _sent_revenue(servers: str) -> Rows:
    sent = (_json(record) for record in consumed(servers, "revenue"))
    return Counter((_at(each["minute"]), each["country"], _whole(each["revenue"]), each["lines"]) for each in sent)


def _sent_alerts(servers: str) -> Rows:
    sent = (_json(record) for record in consumed(servers, "alerts"))
    return Counter(
        (each["kind"], each["order_id"], each["line"], _at(each["cancelled_at"]) if "cancelled_at" in each else None)
        for each in sent
    )


def _dead_letters(servers: str) -> Rows:
    return Counter(
        (record.value().decode(), dict(record.headers())["reason"].decode())
        for record in consumed(servers, "orders.dlq")
    )


def consumed(servers: str, topic: str) -> list[Any]:
    """Return the committed records of a topic."""
    settings = {"bootstrap.servers": servers, "group.id": "chaos", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    found = []
    try:
        open_partitions = set(consumer.list_topics(topic, 30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in open_partitions])
        while open_partitions:
            record = consumer.poll(60)
            assert record is not None, f"a consumer of {topic} got nothing for a minute: a transaction is open"
            if record.error():
                open_partitions.discard(record.partition())
            else:
                found.append(record)
    finally:
        consumer.close()
    return found


def _answers(shop: Shop, database: str, wanted: FromLines) -> list[Comparison]:
    asked = (f"SELECT '{name}', {columns} FROM {database}.{name}" for name, (columns, _) in QUESTIONS.items())
    found: dict[str, Rows] = {name: Counter() for name in QUESTIONS}
    for name, *values in shop.ask(*asked):
        found[name][QUESTIONS[name][1](*values)] += 1
    return [Comparison(f"SQL {name}", getattr(wanted, name)(), found[name]) for name in QUESTIONS]


def _json(record: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(record.value(), parse_float=Decimal)
    return value


def _at(text: str) -> datetime:
    return _plain(datetime.fromisoformat(text))


def _plain(moment: datetime) -> datetime:
    """Return a moment without its zone, which is UTC wherever Spark writes one."""
    return moment.replace(tzinfo=None)


def _thousandths(text: str) -> int:
    return _whole(Decimal(text))


def _whole(amount: Decimal) -> int:
    return int(amount * 1000)

"""Turns order lines into events of the shop's three topics, as the shop's own services would send them.

- `orders`: one event per line, keyed by the order: its first line creates an order, each further line updates it, and a
  line of an order whose number begins with C cancels. Every value is passed on as text, because the pipeline validates
  it. A row with a wrong number of columns is passed on unchanged.
- `payments`: after an order's last line, the events of its payment, keyed by the payment.
- `inventory`: for each line that moves goods, the article's level afterwards, keyed by the article. Because the event
  has the level and not the difference, the topic can be compacted and a repeated event does no harm.

The shop begins with `OPENING_STOCK` of an article, and receives `DELIVERY` more whenever less than `REORDER_LEVEL` is
left. Stock codes that do not begin with a digit are services (postage, fees), which have no stock. Amounts are in
thousandths, because some prices are below a penny.

Payments fail for about one order in forty. The order's number decides which, so every run has the same failures; half
of them succeed at the second attempt.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.demo.generator import COLUMNS
from barnabas.demo.shop import INVENTORY, ORDERS, PAYMENTS

OPENING_STOCK = 1_000
REORDER_LEVEL = 200
DELIVERY = 1_000

_FAILS_ONE_IN = 40
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Event(NamedTuple):
    """One record to produce."""

    topic: str
    key: bytes
    value: bytes


class _Order:
    """An order whose last line has not been seen: the time of the newest line, and the amount so far."""

    __slots__ = ("amount", "at", "order")

    def __init__(self, order: str) -> None:
        self.order = order
        self.at = ""
        self.amount = 0

    def add(self, at: str, amount: int) -> None:
        self.at = at
        self.amount += amount


class ShopEvents:
    """Turns lines into events; keeps the stock of each article, the unfinished orders and the numbers of all orders."""

    def __init__(self) -> None:
        self._lines = 0
        self._level: dict[str, int] = defaultdict(lambda: OPENING_STOCK)
        self._delivered: dict[str, int] = defaultdict(lambda: OPENING_STOCK)
        self._open: dict[str, _Order] = {}
        self._created: set[str] = set()

    def __repr__(self) -> str:
        return f"<ShopEvents lines={self._lines} articles={len(self._level)} open_orders={len(self._open)}>"

    def line(self, line: Sequence[str]) -> Iterator[Event]:
        """Yield the events that one order line causes, in the order they happened."""
        self._lines += 1
        if len(line) != len(COLUMNS):
            yield Event(ORDERS.name, b"", ",".join(line).encode())
            return
        order, code, description, quantity, at, price, customer, country = line
        if len(self._open) > 1 or order not in self._open:
            yield from self._finished_orders(order, at)
        self._open.setdefault(order, _Order(order)).add(at, _amount(quantity, price))
        value = {
            "event": self._kind(order),
            "line": self._lines,
            "order": order,
            "stock_code": code,
            "description": description,
            "quantity": quantity,
            "at": at,
            "unit_price": price,
            "customer": customer,
            "country": country,
        }
        yield Event(ORDERS.name, order.encode(), _encode(value).encode())
        if code[:1].isdigit() and (moved := _whole(quantity)):
            yield from self._stock(code, moved, at)

    def _kind(self, order: str) -> str:
        if order.startswith("C"):
            return "order.cancelled"
        if order in self._created:
            return "order.updated"
        self._created.add(order)
        return "order.created"

    def last_payments(self) -> Iterator[Event]:
        """Yield the remaining payments after the last line."""
        yield from self._finished_orders("", "")

    def _finished_orders(self, order: str, at: str) -> Iterator[Event]:
        """Yield the payments of the orders that can have no further lines.

        Lines of several orders may alternate within a minute, and one order's lines may continue into the next minute.
        An order is finished when a line of another order and another minute follows.
        """
        finished = [each for each in self._open.values() if each.order != order and each.at != at]
        for each in finished:
            del self._open[each.order]
            yield from _payments(each)

    def _stock(self, code: str, moved: int, at: str) -> Iterator[Event]:
        self._level[code] -= moved
        yield self._stock_event("stock.reserved" if moved > 0 else "stock.released", code, at)
        if self._level[code] < REORDER_LEVEL:
            # As many whole deliveries as needed: a customer may have ordered more than was left.
            deliveries = -(-(REORDER_LEVEL - self._level[code]) // DELIVERY)
            self._level[code] += deliveries * DELIVERY
            self._delivered[code] += deliveries * DELIVERY
            yield self._stock_event("stock.updated", code, at)

    def _stock_event(self, event: str, code: str, at: str) -> Event:
        level, delivered = self._level[code], self._delivered[code]
        value = {"event": event, "stock_code": code, "at": at, "level": level, "delivered": delivered}
        return Event(INVENTORY.name, code.encode(), _encode(value).encode())


def _payments(order: _Order) -> Iterator[Event]:
    if order.amount < 0:
        yield _payment(order, "payment.refunded", 1)
    if order.amount <= 0:
        return
    yield _payment(order, "payment.initiated", 1)
    unlucky = zlib.crc32(order.order.encode()) % (2 * _FAILS_ONE_IN)
    if unlucky > 1:
        yield _payment(order, "payment.completed", 1)
        return
    yield _payment(order, "payment.failed", 1)
    if unlucky:
        yield _payment(order, "payment.initiated", 2)
        yield _payment(order, "payment.completed", 2)


def _payment(order: _Order, event: str, attempt: int) -> Event:
    payment = f"pay-{order.order}"
    value = {
        "event": event,
        "payment": payment,
        "attempt": attempt,
        "order": order.order,
        "at": order.at,
        "amount_thousandths": order.amount,
    }
    return Event(PAYMENTS.name, payment.encode(), _encode(value).encode())


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def _amount(quantity: str, price: str) -> int:
    try:
        return _whole(quantity) * round(float(price) * 1000)
    except ValueError:
        return 0

"""What every table and topic of the shop must hold, computed straight from the order lines, without Spark.

Each is a multiset of tuples, so that a row that is there twice is a difference. Amounts are whole thousandths.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeAlias

from barnabas.demo.events import Event, ShopEvents
from barnabas.demo.generator import COLUMNS
from barnabas.demo.shop import INVENTORY, ORDERS, PAYMENTS

Rows: TypeAlias = Counter[tuple[Any, ...]]
_LARGE, _TAKEN_BACK = 5_000_000, 1_000_000
_HOUR = timedelta(hours=1)


class Line(NamedTuple):
    """A valid order line."""

    number: int
    order: str
    code: str
    quantity: int
    at: datetime
    customer: str
    country: str
    amount: int

    @property
    def minute(self) -> datetime:
        return self.at.replace(second=0)


class Checked(NamedTuple):
    """An order line, valid or not: `line` is None if there is a reason to reject it."""

    text: str
    reason: str | None
    line: Line | None


def check(number: int, line: Sequence[str]) -> tuple[str | None, Line | None]:
    """Return why a line is rejected, or the valid line."""
    if len(line) != len(COLUMNS):
        return "it is not an order line", None
    order, code, _, quantity, at, price, customer, country = (each.strip() for each in line)
    moment, pieces, thousandths = _moment(at), _whole(quantity), _thousandths(price)
    for wrong, reason in (
        (not order, "it is not an order line"),
        (not code, "the stock code is missing"),
        (not country, "the country is missing"),
        (moment is None, "the date is not valid"),
        (pieces is None, "the quantity is not a whole number"),
        (pieces == 0, "the quantity is zero"),
        (thousandths is None, "the price is not a number"),
        ((thousandths or 0) < 0, "the price is negative"),
        (thousandths == 0, "the price is zero"),
    ):
        if wrong:
            return reason, None
    assert moment is not None
    assert pieces is not None
    assert thousandths is not None
    return None, Line(number, order, code, pieces, moment, customer, country, pieces * thousandths)


class FromLines:
    """What the pipeline must make of order lines.

    Attributes:
        events: how many records the shop's topics must have.
    """

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        self._checked: list[Checked] = []
        self._stock: list[dict[str, Any]] = []
        self._payments: list[dict[str, Any]] = []
        self._read(lines)
        self._clean = [each.line for each in self._checked if each.line is not None]
        self.events = len(self._checked) + len(self._stock) + len(self._payments)

    def __repr__(self) -> str:
        return f"<FromLines lines={len(self._checked)} events={self.events}>"

    def checked_orders(self) -> Rows:
        """Return text, reason and amount of each line."""
        return Counter((each.text, each.reason, each.line.amount if each.line else None) for each in self._checked)

    def rejected(self) -> Rows:
        """Return text and reason of each bad line."""
        return Counter((each.text, each.reason) for each in self._checked if each.reason is not None)

    def rejected_by_reason(self) -> Rows:
        """Return each reason and its number of lines."""
        reasons = Counter(each.reason for each in self._checked if each.reason is not None)
        return Counter((reason, count) for reason, count in reasons.items())

    def stock_events(self) -> Rows:
        return Counter((each["event"], each["stock_code"], each["level"], each["delivered"]) for each in self._stock)

    def payment_events(self) -> Rows:
        return Counter(
            (each["event"], each["payment"], each["attempt"], each["amount_thousandths"]) for each in self._payments
        )

    def revenue_by_minute(self, last: datetime | None = None) -> Rows:
        """Return minute, country, amount and lines, for all minutes or those until `last`."""
        return _sums(((each.minute, each.country), each) for each in self._clean if last is None or each.minute <= last)

    def revenue_by_day(self) -> Rows:
        """Return day, amount and lines."""
        return _sums(((each.at.date(),), each) for each in self._clean)

    def revenue_by_country(self) -> Rows:
        """Return country, amount and lines."""
        return _sums(((each.country,), each) for each in self._clean)

    def best_sellers(self) -> Rows:
        """Return stock code, pieces and amount."""
        pieces: Counter[str] = Counter()
        amounts: Counter[str] = Counter()
        for each in self._clean:
            pieces[each.code] += each.quantity
            amounts[each.code] += each.amount
        return Counter((code, pieces[code], amounts[code]) for code in pieces)

    def stock(self) -> Rows:
        """Return stock code, level and what was delivered, after the last event."""
        last = {each["stock_code"]: each for each in self._stock}
        return Counter((code, each["level"], each["delivered"]) for code, each in last.items())

    def payments(self) -> Rows:
        """Return payment, order, event, attempt and amount of the last event."""
        last = {each["payment"]: each for each in self._payments}
        return Counter(
            (payment, each["order"], each["event"], each["attempt"], each["amount_thousandths"])
            for payment, each in last.items()
        )

    def suspicious_orders(self) -> Rows:
        """Return kind, order and line, and when it was cancelled: large lines, and those taken back within the hour."""
        large = [("large", each.order, each.number, None) for each in self._clean if each.amount >= _LARGE]
        return Counter([*large, *self._taken_back()])

    def _taken_back(self) -> Iterator[tuple[Any, ...]]:
        orders: defaultdict[tuple[str, str, int], list[Line]] = defaultdict(list)
        for each in self._clean:
            if each.customer and each.amount >= _TAKEN_BACK:
                orders[each.customer, each.code, each.quantity].append(each)
        for back in self._clean:
            if back.customer and back.amount <= -_TAKEN_BACK:
                for each in orders[back.customer, back.code, -back.quantity]:
                    if each.at <= back.at <= each.at + _HOUR:
                        yield "taken back", each.order, each.number, back.at

    def _read(self, lines: Iterable[Sequence[str]]) -> None:
        shop = ShopEvents()
        for number, line in enumerate(lines, 1):
            for event in shop.line(line):
                if event.topic == ORDERS.name:
                    self._checked.append(Checked(event.value.decode(), *check(number, line)))
                else:
                    self._add(event)
        for event in shop.last_payments():
            self._add(event)

    def _add(self, event: Event) -> None:
        {INVENTORY.name: self._stock, PAYMENTS.name: self._payments}[event.topic].append(json.loads(event.value))


def _sums(lines: Iterable[tuple[tuple[Any, ...], Line]]) -> Rows:
    """Return each key with its amount and its number of lines."""
    amounts: Counter[tuple[Any, ...]] = Counter()
    counts: Counter[tuple[Any, ...]] = Counter()
    for key, line in lines:
        amounts[key] += line.amount
        counts[key] += 1
    return Counter((*key, amounts[key], counts[key]) for key in counts)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _thousandths(text: str) -> int | None:
    try:
        return int(Decimal(text) * 1000)
    except InvalidOperation:
        return None

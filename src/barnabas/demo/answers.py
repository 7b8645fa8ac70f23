"""Computes a shopkeeper's answers from result rows.

Amounts are whole numbers of thousandths, as arguments and as results; only the display divides them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeAlias, TypeVar

from barnabas.demo.generator import COLUMNS

K = TypeVar("K")
Row: TypeAlias = dict[str, Any]


class CountryRevenue(NamedTuple):
    """The revenue of one country."""

    country: str
    amount_thousandths: int
    lines: int


class Reason(NamedTuple):
    """The number of lines set aside for one reason."""

    reason: str
    lines: int


class Totals(NamedTuple):
    """The sums of all order lines."""

    revenue_thousandths: int
    clean: int
    rejected: int


def totals(lines: Iterable[Sequence[str]]) -> Totals:
    """Add the order lines up, straight from the file: the pipeline's tables must say the same."""
    revenue, clean, rejected = 0, 0, 0
    for line in lines:
        amount = _amount_thousandths(line)
        if amount is None:
            rejected += 1
        else:
            clean += 1
            revenue += amount
    return Totals(revenue, clean, rejected)


def _amount_thousandths(line: Sequence[str]) -> int | None:
    """Return what a line comes to, or None if it is not a valid order line."""
    if len(line) != len(COLUMNS):
        return None
    order, code, _, quantity, at, price, _, country = (each.strip() for each in line)
    try:
        datetime.fromisoformat(at)
        pieces, price_thousandths = int(quantity), Decimal(price) * 1000
    except (ValueError, InvalidOperation):
        return None
    if not (order and code and country and pieces and price_thousandths > 0):
        return None
    return int(pieces * price_thousandths)


def revenue_per_country(revenue: Iterable[Row]) -> list[CountryRevenue]:
    """Return the countries by revenue, the highest first."""
    amounts: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for row in revenue:
        amounts[row["country"]] += row["amount_thousandths"]
        lines[row["country"]] += row["lines"]
    return [CountryRevenue(country, amount, lines[country]) for country, amount in _ranked(amounts)]


def revenue_per_minute(revenue: Iterable[Row]) -> list[tuple[datetime, int]]:
    """Return the amount of every minute with sales, in order."""
    return sorted(_sums((row["minute"], row["amount_thousandths"]) for row in revenue).items())


def revenue_per_day(revenue: Iterable[Row]) -> list[tuple[date, int]]:
    """Return the amount of every day with sales, in order."""
    return sorted(_sums((row["minute"].date(), row["amount_thousandths"]) for row in revenue).items())


def without(revenue: Iterable[Row], taken_back: Iterable[Row]) -> list[Row]:
    """Return the revenue without the lines that were taken back within the hour, and without their cancellations."""
    rest = [dict(row) for row in revenue]
    by_key = {(row["minute"], row["country"]): row for row in rest}
    for line in taken_back:
        for at, amount in (
            (line["at"], line["amount_thousandths"]),
            (line["cancelled_at"], -line["amount_thousandths"]),
        ):
            row = by_key.get((at.replace(second=0, microsecond=0), line["country"]))
            if row is not None:
                row["amount_thousandths"] -= amount
    return rest


def revenue_per_hour(revenue: Iterable[Row]) -> list[int]:
    """Return the amount of each of the 24 hours, summed over all days."""
    amounts = _sums((row["minute"].hour, row["amount_thousandths"]) for row in revenue)
    return [amounts.get(hour, 0) for hour in range(24)]


def best_sellers(rows: Iterable[Row], count: int) -> list[Row]:
    """Return the articles with the highest revenue."""
    return sorted(rows, key=lambda row: (-row["amount_thousandths"], row["stock_code"]))[:count]


def scarce(stock: Iterable[Row], count: int) -> list[Row]:
    """Return the articles with the lowest stock."""
    return sorted(stock, key=lambda row: (row["level"], row["stock_code"]))[:count]


def payments_by_state(payments: Iterable[Row]) -> dict[str, tuple[int, int]]:
    """Return the number of payments in each state, and their total amount."""
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    for row in payments:
        state = row["event"].removeprefix("payment.")
        counts[state] += 1
        amounts[state] += row["amount_thousandths"]
    return {state: (counts[state], amounts[state]) for state in sorted(counts)}


def set_aside(outcomes: Iterable[Row]) -> list[Reason]:
    """Return the reasons for which lines were set aside, the most frequent first."""
    lines: Counter[str] = Counter()
    for row in outcomes:
        if row["reason"] is not None:
            lines[row["reason"]] += row["lines"]
    return [Reason(reason, count) for reason, count in _ranked(lines)]


def clean_lines(outcomes: Iterable[Row]) -> int:
    """Return the number of clean lines."""
    return sum(row["lines"] for row in outcomes if row["reason"] is None)


def largest(rows: Iterable[Row], count: int) -> list[Row]:
    """Return the lines with the largest amounts."""
    return sorted(rows, key=lambda row: (-row["amount_thousandths"], row["line"]))[:count]


def _sums(pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    sums: defaultdict[K, int] = defaultdict(int)
    for key, amount in pairs:
        sums[key] += amount
    return sums


def _ranked(counted: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))

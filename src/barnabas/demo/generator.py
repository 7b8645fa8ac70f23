"""Generates a small shop from a seed: order lines with the columns, the habits and the mistakes of real data.

The same seed gives the same lines.

It imitates these habits: most orders come from one country; a few articles sell far more than the rest; orders have
many lines; some customers are unknown; some orders are cancelled (the invoice number begins with C and quantities are
negative); sometimes a customer orders a huge quantity and cancels it minutes later. About one line in a hundred is
invalid, in each of the ways for which the pipeline sets lines aside.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

COLUMNS = (
    "InvoiceNo",
    "StockCode",
    "Description",
    "Quantity",
    "InvoiceDate",
    "UnitPrice",
    "CustomerID",
    "Country",
)

_COUNTRIES = ("United Kingdom", "Germany", "France", "Ireland", "Spain", "Netherlands", "Belgium", "Portugal", "Norway")
_COUNTRY_WEIGHTS = (880, 30, 28, 20, 10, 10, 8, 7, 7)
_COLOURS = ("RED", "BLUE", "IVORY", "GREEN", "PINK", "SILVER", "VINTAGE", "SPOTTED", "STRIPED", "WOODEN")
_THINGS = ("TEAPOT", "LANTERN", "CUSHION", "MUG", "CLOCK", "APRON", "BASKET", "CANDLE", "UMBRELLA", "TOY", "FRAME")
_ARTICLES = 600
_FIRST_INVOICE = 536_365

OrderLine = list[str]


def generate_lines(rows: int, seed: int = 1) -> Iterator[OrderLine]:
    """Yield `rows` order lines, oldest first, each a list of texts in the order of `COLUMNS`."""
    shop = _Shop(random.Random(seed))
    made = 0
    while made < rows:
        for line in shop.next_order():
            if made == rows:
                return
            made += 1
            yield line


class _Shop:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._now = datetime(2025, 12, 1, 8, 0)
        self._invoice = _FIRST_INVOICE
        self._articles = [_article(chance, number) for number in range(_ARTICLES)]
        # A popularity that falls with the rank: the first article sells about a hundred times the last.
        self._popularity = [1 / (rank + 5) ** 0.8 for rank in range(_ARTICLES)]
        self._reversals: list[tuple[datetime, list[OrderLine]]] = []

    def next_order(self) -> list[OrderLine]:
        """Return the lines of one order or cancellation, and advance the clock."""
        self._now += timedelta(seconds=self._chance.expovariate(1 / 600))
        if self._now.hour >= 20:
            self._now = (self._now + timedelta(days=1)).replace(hour=8, minute=0)
        if self._reversals and self._reversals[0][0] <= self._now:
            return self._cancel(self._reversals.pop(0)[1])
        self._invoice += 1
        lines = self._order()
        dice = self._chance.random()
        if dice < 0.002:
            lines[0][3] = str(self._chance.randrange(2_000, 60_000))
            self._reversals.append((self._now, [list(lines[0])]))
        elif dice < 0.03:
            self._reversals.append((self._now + timedelta(hours=self._chance.randrange(3, 400)), [list(lines[0])]))
            self._reversals.sort(key=lambda reversal: reversal[0])
        return [self._broken(line) if self._chance.random() < 0.01 else line for line in lines]

    def _order(self) -> list[OrderLine]:
        chance = self._chance
        customer = "" if chance.random() < 0.2 else f"{12_346 + int(chance.paretovariate(0.7)) % 4_000}.0"
        country = chance.choices(_COUNTRIES, _COUNTRY_WEIGHTS)[0]
        count = min(60, 1 + int(chance.expovariate(1 / 15)))
        chosen = {article[0]: article for article in chance.choices(self._articles, self._popularity, k=count)}
        moment = self._now.strftime("%Y-%m-%d %H:%M:00")
        return [
            [str(self._invoice), code, name, str(_quantity(chance)), moment, price, customer, country]
            for code, name, price in chosen.values()
        ]

    def _cancel(self, lines: list[OrderLine]) -> list[OrderLine]:
        moment = self._now.strftime("%Y-%m-%d %H:%M:00")
        self._invoice += 1
        return [
            [f"C{self._invoice}", code, name, str(-int(quantity)), moment, price, customer, country]
            for _, code, name, quantity, _, price, customer, country in lines
        ]

    def _broken(self, line: OrderLine) -> OrderLine:
        broken = list(line)
        column, text = self._chance.choice(
            ((3, "0"), (3, "a dozen"), (4, "yesterday"), (5, "0"), (5, "-4.95"), (5, "ask"), (1, ""))
        )
        broken[column] = text
        return broken


def _article(chance: random.Random, number: int) -> tuple[str, str, str]:
    name = f"{chance.choice(_COLOURS)} {chance.choice(_THINGS)} {chance.choice(_COLOURS)}"
    return str(20_000 + number * 7), name, f"{max(0.19, chance.lognormvariate(0.9, 0.9)):.2f}"


def _quantity(chance: random.Random) -> int:
    return chance.choice((1, 1, 1, 2, 2, 3, 4, 6, 6, 8, 10, 12, 12, 24, 48))

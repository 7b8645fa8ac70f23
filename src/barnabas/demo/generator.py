"""Generates a small shop from a seed: order lines with the columns, the habits and the mistakes of real data.

The same seed gives the same lines.

It imitates these habits: the shop is open from eight to eight, busiest at noon, and closed on Saturdays; most customers
are in one country; a few articles sell far more than the rest, cheap ones by the dozen; orders have many lines; some
customers are unknown; some orders are cancelled (the invoice number begins with C and quantities are negative);
sometimes a customer orders a huge quantity and cancels it within the hour. About one line in a hundred is invalid, in
each of the ways for which the pipeline sets lines aside.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

from barnabas.demo.catalogue import Article, articles

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
_FIRST_INVOICE = 536_365
_FIRST_CUSTOMER, _CUSTOMERS = 12_346, 4_000
_OPENS, _CLOSES = 8, 20
_MEAN_GAP_S = 600
_BUSY = (0.5, 0.9, 1.3, 1.5, 1.8, 1.6, 1.3, 1.2, 0.8, 0.5, 0.3, 0.2)
"""How busy each hour is, from the first one on."""
_SATURDAY = 5

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
        self._now = datetime(2025, 12, 1, _OPENS, 0)
        self._invoice = _FIRST_INVOICE
        self._articles = articles(chance)
        self._cheap = [article for article in self._articles if article.is_cheap]
        # A popularity that falls with the rank: the first article sells about thirty times the last.
        self._popularity = [1 / (rank + 5) ** 0.8 for rank in range(len(self._articles))]
        self._countries: dict[str, str] = {}
        self._reversals: list[tuple[datetime, OrderLine]] = []

    def next_order(self) -> list[OrderLine]:
        """Return the lines of one order or cancellation, and advance the clock."""
        busy = _BUSY[self._now.hour - _OPENS]
        following = _while_open(self._now + timedelta(seconds=self._chance.expovariate(busy / _MEAN_GAP_S)))
        if self._reversals and self._reversals[0][0] <= following:
            due, line = self._reversals.pop(0)
            self._now = max(due, self._now)
            return [self._cancelled(line)]
        self._now = following
        self._invoice += 1
        lines = self._order()
        dice = self._chance.random()
        if dice < 0.0015 and self._now.hour < _CLOSES - 2:
            lines = [self._bulk(lines[0])]
            self._reverse(lines[0], timedelta(minutes=self._chance.randrange(5, 40)))
        elif dice < 0.03:
            self._reverse(lines[0], timedelta(hours=self._chance.randrange(3, 400)))
        return [self._broken(line) if self._chance.random() < 0.01 else line for line in lines]

    def _order(self) -> list[OrderLine]:
        chance = self._chance
        customer, country = self._customer()
        count = min(60, 1 + int(chance.expovariate(1 / 15)))
        chosen = {article.code: article for article in chance.choices(self._articles, self._popularity, k=count)}
        return [
            [
                str(self._invoice),
                *article[:2],
                str(_quantity(chance, article)),
                self._moment(),
                article.price,
                customer,
                country,
            ]
            for article in chosen.values()
        ]

    def _customer(self) -> tuple[str, str]:
        """Return a customer and the country, which stays the same; one in five is unknown."""
        if self._chance.random() < 0.2:
            return "", _COUNTRIES[0]
        # Some customers order far more often than others.
        customer = f"{_FIRST_CUSTOMER + int(self._chance.random() ** 2 * _CUSTOMERS)}.0"
        if customer not in self._countries:
            self._countries[customer] = self._chance.choices(_COUNTRIES, _COUNTRY_WEIGHTS)[0]
        return customer, self._countries[customer]

    def _bulk(self, line: OrderLine) -> OrderLine:
        """Return a line that orders thousands of a cheap article."""
        article = self._chance.choice(self._cheap)
        quantity = -(-6_000 // float(article.price)) + self._chance.randrange(2_000, 9_000)
        customer = line[6] or f"{_FIRST_CUSTOMER}.0"
        return [
            line[0],
            article.code,
            article.description,
            str(int(quantity)),
            line[4],
            article.price,
            customer,
            line[7],
        ]

    def _reverse(self, line: OrderLine, after: timedelta) -> None:
        self._reversals.append((_while_open(self._now + after), list(line)))
        self._reversals.sort(key=lambda reversal: reversal[0])

    def _cancelled(self, line: OrderLine) -> OrderLine:
        _, code, description, quantity, _, price, customer, country = line
        self._invoice += 1
        return [f"C{self._invoice}", code, description, str(-int(quantity)), self._moment(), price, customer, country]

    def _moment(self) -> str:
        return self._now.strftime("%Y-%m-%d %H:%M:00")

    def _broken(self, line: OrderLine) -> OrderLine:
        broken = list(line)
        column, text = self._chance.choice(
            ((3, "0"), (3, "a dozen"), (4, "yesterday"), (5, "0"), (5, "-4.95"), (5, "ask"), (1, ""))
        )
        broken[column] = text
        return broken


def _while_open(moment: datetime) -> datetime:
    """Return the moment, or the next opening after it."""
    if moment.hour >= _CLOSES:
        moment = (moment + timedelta(days=1)).replace(hour=_OPENS, minute=0)
    elif moment.hour < _OPENS:
        moment = moment.replace(hour=_OPENS, minute=0)
    return moment + timedelta(days=1) if moment.weekday() == _SATURDAY else moment


def _quantity(chance: random.Random, article: Article) -> int:
    price = float(article.price)
    if price < 1.5:
        return chance.choice((6, 10, 12, 12, 24, 25, 48))
    return chance.choice((1, 2, 3, 4, 6, 6, 8, 12, 12, 24) if price < 5 else (1, 1, 1, 2, 2, 3, 4, 6))

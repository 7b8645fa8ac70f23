"""The divisions and products of a plan, each with the example that the public rules of thumb print."""

from __future__ import annotations

import math

DAY_S = 86_400
GIGA = 1_000_000_000


def at_least(total: float, each: float) -> int:
    """Return how many of a thing carry a total, at least one.

    500 MB/s on partitions of 25 MB/s, 1 GB/s on partitions of 50 MB/s, 100,000 records/s by consumers of 10,000:

    >>> at_least(500, 25), at_least(1000, 50), at_least(100_000, 10_000)
    (20, 20, 10)
    """
    # A quotient such as 11.000000000000002 stands for 11: growth makes such numbers.
    return max(1, math.ceil(round(total / each, 9)))


def rounded_up(number: int, divisor: int) -> int:
    """Return the next multiple, so that each consumer has as many partitions as the others.

    >>> rounded_up(20, 10), rounded_up(20, 3)
    (20, 21)
    """
    return -(-number // divisor) * divisor


def grown(rate: float, percent_a_year: float, years: float) -> float:
    """Return a rate after some years of growth.

    >>> grown(100, 50, 2)
    225.0
    """
    return float(rate * (1 + percent_a_year / 100) ** years)


def together(partitions: int, each: float, brokers: int) -> tuple[float, float]:
    """Return what partitions write together, and each broker's share of it.

    30 partitions of 25 MB/s over 6 brokers write 750 MB/s, which are 750,000 records of 1 kB each second:

    >>> together(30, 25, 6)
    (750, 125.0)
    """
    return partitions * each, partitions * each / brokers


def retained(rate: float, seconds: float) -> float:
    """Return the bytes that one replica keeps of a stream; 7 days at 100 MB/s are about 60 TB.

    >>> retained(100e6, 7 * DAY_S) / 1e12
    60.48
    """
    return rate * seconds


def monthly_cost(size: float, price_of_gigabyte: float) -> float:
    """Return the price of storage for a month.

    A terabyte at $0.02 a GB-month:

    >>> monthly_cost(1e12, 0.02)
    20.0
    """
    return size / GIGA * price_of_gigabyte

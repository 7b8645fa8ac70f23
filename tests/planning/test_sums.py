"""The examples of the sums are those of the public rules; they are doctests."""

import doctest

from barnabas.planning import sums


def test_the_examples_hold() -> None:
    found = doctest.testmod(sums)
    assert (found.failed, found.attempted) == (0, 6)


def test_a_quotient_a_hair_above_a_whole_number_needs_no_more() -> None:
    assert 0.07 * 100 > 7
    assert sums.at_least(0.07 * 100, 1) == 7


def test_nothing_needs_one() -> None:
    assert sums.at_least(0, 5) == 1

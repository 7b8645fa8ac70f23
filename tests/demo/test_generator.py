"""The generated shop is the same for the same seed, and has every kind of invalid line."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from barnabas.demo.generator import COLUMNS, generate_lines


def test_the_same_seed_gives_the_same_shop():
    assert list(generate_lines(500, seed=3)) == list(generate_lines(500, seed=3))
    assert list(generate_lines(500, seed=3)) != list(generate_lines(500, seed=4))


def test_it_makes_as_many_lines_as_requested():
    for rows in (0, 1, 999):
        assert len(list(generate_lines(rows))) == rows


def test_lines_are_in_the_order_of_their_dates():
    dates = [line[4] for line in generate_lines(20_000) if line[4][:1].isdigit()]
    assert dates == sorted(dates)


def test_it_looks_like_a_shop():
    lines = list(generate_lines(20_000))
    assert all(len(line) == len(COLUMNS) for line in lines)
    countries = Counter(line[7] for line in lines)
    assert 0.8 < countries.most_common(1)[0][1] / len(lines) < 0.95
    articles = Counter(line[1] for line in lines).most_common()
    assert articles[0][1] > 10 * articles[-1][1]
    assert any(not line[6] for line in lines)
    assert 0 < sum(line[0].startswith("C") for line in lines) < len(lines) / 20


def test_the_shop_is_open_by_day_and_closed_on_saturdays():
    moments = [datetime.fromisoformat(line[4]) for line in generate_lines(20_000) if line[4][:1].isdigit()]
    hours = Counter(moment.hour for moment in moments)
    assert set(hours) == set(range(8, 20))
    assert hours.most_common(1)[0][0] in (11, 12, 13)
    assert {moment.weekday() for moment in moments} == {0, 1, 2, 3, 4, 6}


def test_a_customer_stays_in_one_country_and_none_has_most_orders():
    lines = list(generate_lines(50_000))
    countries = {line[6]: set() for line in lines if line[6]}
    for line in lines:
        if line[6]:
            countries[line[6]].add(line[7])
    assert all(len(each) == 1 for each in countries.values())
    orders = Counter(customer for customer, _ in {(line[6], line[0]) for line in lines if line[6]})
    assert orders.most_common(1)[0][1] < len(orders) / 20


def test_bulk_orders_are_cancelled_within_the_hour():
    """Otherwise they would be most of the revenue of one hour, and a loss in another."""
    lines = [line for line in generate_lines(50_000) if line[3].lstrip("-").isdigit()]
    bulk = [line for line in lines if int(line[3]) > 1000]
    assert 2 <= len(bulk) <= 8
    for line in bulk:
        back = next(each for each in lines if (each[1], each[3], each[6]) == (line[1], f"-{line[3]}", line[6]))
        waited = datetime.fromisoformat(back[4]) - datetime.fromisoformat(line[4])
        assert timedelta(minutes=4) <= waited <= timedelta(hours=1)
        assert 5_000 < int(line[3]) * float(line[5]) < 40_000


def test_it_has_every_kind_of_invalid_line():
    lines = list(generate_lines(20_000))
    quantities, prices = {line[3] for line in lines}, {line[5] for line in lines}
    assert {"0", "a dozen"} <= quantities
    assert {"0", "-4.95", "ask"} <= prices
    assert any(line[4] == "yesterday" for line in lines)
    assert any(not line[1] for line in lines)

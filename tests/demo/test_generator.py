"""The generated shop is the same for the same seed, and has every kind of invalid line."""

from __future__ import annotations

from collections import Counter

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


def test_it_has_every_kind_of_invalid_line():
    lines = list(generate_lines(20_000))
    quantities, prices = {line[3] for line in lines}, {line[5] for line in lines}
    assert {"0", "a dozen"} <= quantities
    assert {"0", "-4.95", "ask"} <= prices
    assert any(line[4] == "yesterday" for line in lines)
    assert any(not line[1] for line in lines)

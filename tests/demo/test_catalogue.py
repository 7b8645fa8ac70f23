"""Articles that a shop could have."""

from __future__ import annotations

import random

from barnabas.demo.catalogue import articles


def test_articles_have_codes_names_and_prices_of_their_own():
    made = articles(random.Random(1))
    assert 300 < len(made) < 700
    assert len({article.code for article in made}) == len({article.description for article in made}) == len(made)
    assert made != articles(random.Random(2))


def test_names_do_not_repeat_a_word_and_prices_fit_them():
    prices = {article.description: float(article.price) for article in articles(random.Random(1))}
    assert [name for name in prices if len(set(name.split())) < len(name.split())] == []
    assert 0.3 < prices["KRAFT GIFT TAGS"] < 1 < prices["OAK BREAD BIN"] < 25
    assert prices["SET OF 4 FLORAL MUGS"] > 3 * prices["FLORAL MUG"]
    assert {round(price * 100) % 5 for price in prices.values()} == {0}

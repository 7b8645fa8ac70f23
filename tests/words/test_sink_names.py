"""Whose transaction it is, by its id."""

from __future__ import annotations

import pytest

from barnabas.words.sink_names import sink_of


@pytest.mark.parametrize(
    ("transactional_id", "name"),
    [
        ("shop/orders/0123456789ab/7", "shop/orders"),
        ("shop/orders", None),
        ("shop/orders/worker/7", None),
        ("shop/orders/0123456789ab/", None),
        ("a/shop/orders/0123456789ab/7", None),
    ],
)
def test_only_a_task_of_a_sink_has_such_an_id(transactional_id: str, name: str | None) -> None:
    assert sink_of(transactional_id) == name

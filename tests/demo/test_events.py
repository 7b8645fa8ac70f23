"""What each order line sends to the shop's topics."""

from __future__ import annotations

import json
from typing import Any

from barnabas.demo.events import DELIVERY, OPENING_STOCK, REORDER_LEVEL, ShopEvents
from barnabas.demo.generator import generate_lines

LINE = ["536365", "85123A", "A LANTERN, WHITE", "6", "2010-12-01 08:26:00", "2.55", "17850.0", "United Kingdom"]


def line(**change: str) -> list[str]:
    columns = ("order", "code", "description", "quantity", "at", "price", "customer", "country")
    return [change.get(column, value) for column, value in zip(columns, LINE, strict=True)]


def told(events: Any) -> list[tuple[str, bytes, dict[str, Any]]]:
    return [(event.topic, event.key, json.loads(event.value)) for event in events]


def test_a_line_is_passed_on_as_it_was_written():
    (topic, key, value), _ = told(ShopEvents().line(LINE))
    assert (topic, key) == ("orders", b"536365")
    assert value == {
        "event": "order.created",
        "line": 1,
        "order": "536365",
        "stock_code": "85123A",
        "description": "A LANTERN, WHITE",
        "quantity": "6",
        "at": "2010-12-01 08:26:00",
        "unit_price": "2.55",
        "customer": "17850.0",
        "country": "United Kingdom",
    }


def test_the_first_line_creates_an_order_and_further_ones_update_it():
    shop = ShopEvents()
    lines = (LINE, line(code="84029E"), line(order="536366"), line(at="2010-12-02 10:00:00"), line(order="C536367"))
    values = [value for each in lines for topic, _, value in told(shop.line(each)) if topic == "orders"]
    assert [value["event"].removeprefix("order.") for value in values] == [
        "created", "updated", "created", "updated", "cancelled",
    ]  # fmt: skip


def test_a_row_that_is_not_an_order_line_is_passed_on_too():
    ((topic, _, value),) = [(e.topic, e.key, e.value) for e in ShopEvents().line(["nonsense", "x"])]
    assert (topic, value) == ("orders", b"nonsense,x")


def test_a_stock_event_has_the_level_and_the_articles_key():
    shop = ShopEvents()
    _, (topic, key, value) = told(shop.line(LINE))
    assert (topic, key, value["event"]) == ("inventory", b"85123A", "stock.reserved")
    assert (value["level"], value["delivered"]) == (OPENING_STOCK - 6, OPENING_STOCK)
    *_, (_, _, back) = told(shop.line(line(order="C1", quantity="-6")))
    assert (back["event"], back["level"]) == ("stock.released", OPENING_STOCK)


def test_a_delivery_follows_when_little_is_left():
    _, reserved, updated = told(ShopEvents().line(line(quantity=str(3 * DELIVERY))))
    assert reserved[2]["level"] == OPENING_STOCK - 3 * DELIVERY
    assert updated[2]["event"] == "stock.updated"
    assert REORDER_LEVEL <= updated[2]["level"] < REORDER_LEVEL + DELIVERY
    assert updated[2]["level"] == updated[2]["delivered"] - 3 * DELIVERY


def test_services_and_invalid_quantities_move_no_stock():
    for change in ({"code": "POST"}, {"quantity": "a dozen"}, {"quantity": "0"}):
        assert [topic for topic, _, _ in told(ShopEvents().line(line(**change)))] == ["orders"]


def test_a_payment_follows_the_last_line_of_its_order():
    shop = ShopEvents()
    list(shop.line(LINE))
    list(shop.line(line(quantity="2", price="0.001")))
    assert [topic for topic, _, _ in told(shop.line(line(order="536366")))] == ["orders", "inventory"]
    assert [topic for topic, _, _ in told(shop.line(line(code="POST", quantity="0")))] == ["orders"]
    first, second = told(shop.line(line(order="536367", at="2010-12-01 08:27:00")))[:2]
    assert (first[0], first[1]) == ("payments", b"pay-536365")
    assert [first[2]["event"], second[2]["event"]] == ["payment.initiated", "payment.completed"]
    assert first[2]["amount_thousandths"] == 6 * 2550 + 2


def test_an_order_may_continue_in_the_next_minute():
    shop = ShopEvents()
    list(shop.line(LINE))
    assert [topic for topic, _, _ in told(shop.line(line(at="2010-12-01 08:27:00")))] == ["orders", "inventory"]
    assert [value["amount_thousandths"] for _, _, value in told(shop.last_payments())] == [30_600, 30_600]


def test_a_cancelled_order_is_refunded():
    shop = ShopEvents()
    list(shop.line(line(order="C536366", quantity="-6")))
    ((_, _, value),) = told(shop.last_payments())
    assert (value["event"], value["amount_thousandths"]) == ("payment.refunded", -15_300)


def test_an_order_without_an_amount_has_no_payment():
    shop = ShopEvents()
    list(shop.line(line(price="0")))
    assert told(shop.last_payments()) == []


def test_some_payments_fail_and_some_of_these_succeed_later():
    shop, events = ShopEvents(), []
    for each in generate_lines(20_000):
        events += [e for e in told(shop.line(each)) if e[0] == "payments"]
    failed = {value["payment"] for _, _, value in events if value["event"] == "payment.failed"}
    again = {value["payment"] for _, _, value in events if value["attempt"] == 2}
    orders = {value["payment"] for _, _, value in events}
    assert again < failed
    assert 0 < len(failed) < len(orders) / 15

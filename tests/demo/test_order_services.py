"""Fulfilment and notifications: what each event makes them do, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.demo.order_services import SERVICES, Notifications, Unusable, database_of

EVENT = {"event": "order.created", "order": "7", "line": 1, "stock_code": "A", "quantity": "6", "at": "2025-12-01"}


def rows(folder: Path, name: str, *events: dict[str, object]) -> dict[str, list[tuple[object, ...]]]:
    """Let a service take events; return the rows of its tables that have some."""
    with database_of(name, folder) as database:
        for event in events:
            SERVICES[name]().take(database, {**EVENT, **event})
        tables = [each for (each,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {each: found for each in tables if (found := database.execute(f"SELECT * FROM {each}").fetchall())}


def test_fulfilment_packs_and_takes_back_each_line_once(tmp_path: Path) -> None:
    second = {"event": "order.updated", "line": 2, "quantity": "3"}
    back = {"event": "order.cancelled", "order": "C8", "line": 3, "quantity": "-2"}
    found = rows(tmp_path, "fulfilment", {}, {}, second, back, second, back)
    assert found == {"packed": [("7", 1, "A", 6), ("7", 2, "A", 3)], "returned": [("C8", 3, "A", 2)]}


def test_a_mail_is_sent_once_for_an_order_and_its_cancellation(tmp_path: Path) -> None:
    events = ({}, {"event": "order.updated", "line": 2}, {}, {"event": "order.cancelled", "order": "C8"})
    found = rows(tmp_path, "notifications", *events)
    assert found == {"mails": [("7", "confirmation", "2025-12-01"), ("C8", "cancellation", "2025-12-01")]}


def test_what_cannot_be_used_has_a_reason(tmp_path: Path) -> None:
    with database_of("fulfilment", tmp_path) as database, pytest.raises(Unusable, match="quantity is not a number"):
        SERVICES["fulfilment"]().take(database, {**EVENT, "quantity": "a dozen"})
    with database_of("notifications", tmp_path) as database, pytest.raises(Unusable, match="was not created"):
        Notifications().take(database, {**EVENT, "event": "order.updated"})

"""Who may connect, in virtual time: rates, room, addresses, and what takes nothing from whom."""

from __future__ import annotations

import pytest

from barnabas.quota.connection_quotas import ConnectionLimits, ConnectionQuotas, Door, parse_overrides

EPOCH_MS = 1_700_000_000_000
INTERNAL, CLIENTS = "INTERNAL", "CLIENTS"


def test_an_address_has_its_number_and_overrides_win() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(per_ip=1, overrides={"10.0.0.2": 2, "10.0.0.3": 0}))
    doors = [
        quotas.admit(CLIENTS, ip, EPOCH_MS).door for ip in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3")
    ]
    assert doors == [Door.OPEN, Door.CLOSED, Door.OPEN, Door.OPEN, Door.CLOSED]
    assert (quotas.total, quotas.by_ip) == (3, {"10.0.0.1": 1, "10.0.0.2": 2})
    quotas.leave(CLIENTS, "10.0.0.1")
    assert quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS).door is Door.OPEN


def test_room_of_broker_and_listener_and_the_protected_listener() -> None:
    quotas = ConnectionQuotas(
        ConnectionLimits(connections=3, listeners={CLIENTS: (2, 2**31 - 1)}, protected_listener=INTERNAL)
    )
    for number in range(2):
        assert quotas.has_room(CLIENTS)
        quotas.admit(CLIENTS, f"10.0.0.{number}", EPOCH_MS)
    assert not quotas.has_room(CLIENTS)
    for number in range(5):
        assert quotas.has_room(INTERNAL)
        quotas.admit(INTERNAL, f"10.0.1.{number}", EPOCH_MS)
    assert quotas.excess == 4


def test_a_broker_s_rate_makes_connections_wait_a_window_at_most() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(creation_rate=10), samples=11, window_seconds=1)
    assert [quotas.arrive(CLIENTS, EPOCH_MS) for _ in range(100)] == [0] * 100
    # The 101st in ten whole windows: 10.1/s where 10/s are allowed.
    assert quotas.arrive(CLIENTS, EPOCH_MS) == 100
    for _ in range(200):
        quotas.arrive(CLIENTS, EPOCH_MS)
    assert quotas.arrive(CLIENTS, EPOCH_MS) == 1000


def test_a_fast_address_is_closed_later_and_costs_the_others_nothing() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(creation_rate=10))
    quotas.apply(
        {(("ip", None),): {"connection_creation_rate": 5.0}, (("ip", "10.0.0.9"),): {"connection_creation_rate": 7.0}}
    )
    for _ in range(50):
        assert quotas.arrive(CLIENTS, EPOCH_MS) == 0
        assert quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS).door is Door.OPEN
    for _ in range(20):
        assert quotas.arrive(CLIENTS, EPOCH_MS) == 0
        refused = quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS)
        assert (refused.door, refused.wait_ms) == (Door.CLOSE_LATER, 200)
    # Twenty refused ones did not use up the broker's hundred.
    for _ in range(50):
        assert quotas.arrive(CLIENTS, EPOCH_MS) == 0
        assert quotas.admit(CLIENTS, "10.0.0.9", EPOCH_MS).door is Door.OPEN
    assert quotas.total == 100
    quotas.apply({(("ip", None),): {"connection_creation_rate": None}})
    assert quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS).door is Door.OPEN


def test_rates_of_addresses_that_stay_away_are_dropped() -> None:
    quotas = ConnectionQuotas()
    quotas.apply({(("ip", None),): {"connection_creation_rate": 1.0}})
    for _ in range(11):
        quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS)
    assert quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS).door is Door.CLOSE_LATER
    quotas.expire(EPOCH_MS + 3_600_001)
    assert quotas.admit(CLIENTS, "10.0.0.1", EPOCH_MS + 3_600_001).door is Door.OPEN


def test_overrides_are_read() -> None:
    assert parse_overrides("127.0.0.1:5, [::1]:7,localhost:9") == {"127.0.0.1": 9, "::1": 7}
    assert parse_overrides("") == {}


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:x", "10.0.0.1:²", "somewhere:5"])
def test_overrides_that_cannot_be_read_say_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"max\.connections\.per\.ip\.overrides"):
        parse_overrides(text)

"""A minute's part of `make fuzz`: the same oracles, fewer frames."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fuzz.certificates import Certificates
from tests.fuzz.decoder import Decoders
from tests.fuzz.dispatcher import FuzzedNode
from tests.fuzz.logins import Logins
from tests.fuzz.part_time import timed
from tests.fuzz.sockets import attack
from tests.fuzz.strangers import Strangers


def test_decoders_return_a_message_or_a_kafka_error() -> None:
    decoders = Decoders(seed=1)
    for _ in range(10_000):
        decoders.one()
    assert decoders.decoded > 500


def test_a_node_answers_or_refuses_every_request(tmp_path: Path) -> None:
    with FuzzedNode(tmp_path, seed=1) as node:
        while node.sent < 5000:
            node.one()
        node.pause()
        node.check_others_data()
        assert node.answered > 1000


@pytest.mark.slow
def test_hostile_connections_leave_another_client_alone(tmp_path: Path) -> None:
    report = asyncio.run(attack(tmp_path, seed=1, frames=1500))
    assert report.written > 0
    assert report.logins > 0


def test_logins_tokens_and_key_sets_are_accepted_or_refused() -> None:
    logins = Logins(seed=1)
    for _ in range(500):
        timed(logins)
    assert 50 < logins.accepted < logins.tried


def test_handshakes_certificates_and_settings_are_accepted_or_refused(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path, seed=1)
    for _ in range(300):
        timed(certificates)
    assert 20 < certificates.accepted < certificates.tried


def test_a_stranger_changes_nothing() -> None:
    with Strangers(seed=1) as strangers:
        for _ in range(1000):
            strangers.one()
        strangers.check()
        assert strangers.denied > 300

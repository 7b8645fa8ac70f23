"""Who a certificate stands for, as its listener says."""

from __future__ import annotations

import pytest

from barnabas.net.listener_security import ListenerSecurity
from barnabas.security.principal import ANONYMOUS, Principal


def test_the_principal_of_a_certificate() -> None:
    security = ListenerSecurity(protocol="SSL", name_of=lambda certificate: certificate.decode().upper())
    assert security.principal_of(b"alice") == Principal("User", "ALICE")
    assert security.principal_of(None) == ANONYMOUS


def test_a_listener_that_asks_for_none() -> None:
    assert ListenerSecurity(protocol="SSL").principal_of(b"alice") == ANONYMOUS


def test_a_name_without_a_rule() -> None:
    def name_of(certificate: bytes) -> str:
        raise ValueError("No rules apply")

    with pytest.raises(ValueError, match="No rules apply"):
        ListenerSecurity(protocol="SSL", name_of=name_of).principal_of(b"alice")

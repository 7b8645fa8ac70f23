"""Certificates for tests: an authority of the process, and one that no other trusts. Keys take milliseconds; each is made once."""

from __future__ import annotations

import time
from functools import cache

from barnabas.security.dev_certificates import DevelopmentAuthority, IssuedCertificate

__all__ = ["authority", "foreign_authority", "node", "user"]


@cache
def authority() -> DevelopmentAuthority:
    """Return the authority that the tests' nodes and users have in common."""
    return DevelopmentAuthority.create(now_ms(), "CN=the tests' authority")


@cache
def foreign_authority() -> DevelopmentAuthority:
    """Return another authority."""
    return DevelopmentAuthority.create(now_ms(), "CN=a foreign authority")


@cache
def node(name: str = "CN=localhost") -> IssuedCertificate:
    """Return a node's certificate, for localhost and 127.0.0.1."""
    return authority().issue(name, hosts=["localhost", "127.0.0.1", "::1"])


@cache
def user(name: str = "CN=alice") -> IssuedCertificate:
    """Return a user's certificate."""
    return authority().issue(name)


def now_ms() -> int:
    """Return the time of day: OpenSSL reads it too."""
    return int(time.time() * 1000)

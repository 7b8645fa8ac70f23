"""The cipher suites of `ssl.cipher.suites`: Java's names, and OpenSSL's for them.

    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384  ▶  ECDHE-RSA-AES256-GCM-SHA384

As in Java the list is the whole choice: without a suite of TLS 1.3 there is no TLS 1.3, and without one of TLS 1.2 no TLS 1.2. Python
cannot choose among the three suites of TLS 1.3, so a list has all three of them or none.

Sources: RFC 5246, 5289, 7905, 8446; the names of the JDK's `CipherSuite`, which are the IANA's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["SUITES_OF_TLS_13", "CipherSuites", "cipher_suites", "openssl_name"]

SUITES_OF_TLS_13 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")

_SUITE = re.compile(
    r"(?:TLS|SSL)_(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|DHE_DSS|RSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>GCM|CBC)_(?P<hash>SHA|SHA256|SHA384)|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)


class CipherSuites(NamedTuple):
    """A choice. Attributes: `of_tls_12` has OpenSSL's names, in order; `with_tls_13` says whether TLS 1.3 is chosen too."""

    of_tls_12: tuple[str, ...]
    with_tls_13: bool


def openssl_name(name: str) -> str | None:
    """Return OpenSSL's name of a suite of TLS 1.2; None if the name is not one of the suites that Java and OpenSSL share."""
    found = _SUITE.fullmatch(name)
    if found is None:
        return None
    exchange = "" if found["exchange"] == "RSA" else found["exchange"].replace("_", "-") + "-"
    if found["chacha"]:
        return f"{exchange}CHACHA20-POLY1305" if exchange else None
    mode = "GCM-" if found["mode"] == "GCM" else ""
    return f"{exchange}AES{found['bits']}-{mode}{found['hash']}"


def cipher_suites(names: Iterable[str]) -> CipherSuites:
    """Return the choice that a list of Java's names makes.

    Raises:
        ValueError: a name is not known, or only a part of the suites of TLS 1.3 is in the list.
    """
    chosen = list(dict.fromkeys(names))
    of_tls_13 = [name for name in chosen if name in SUITES_OF_TLS_13]
    if of_tls_13 and len(of_tls_13) < len(SUITES_OF_TLS_13):
        raise ValueError(
            f"Python cannot choose among the suites of TLS 1.3: name all of {', '.join(SUITES_OF_TLS_13)}, or none of them"
        )
    of_tls_12 = []
    for name in chosen:
        if name in SUITES_OF_TLS_13:
            continue
        known = openssl_name(name)
        if known is None:
            raise ValueError(f"{name} is not a cipher suite of TLS 1.2 or 1.3 that OpenSSL has under Java's name")
        of_tls_12.append(known)
    return CipherSuites(tuple(of_tls_12), bool(of_tls_13))

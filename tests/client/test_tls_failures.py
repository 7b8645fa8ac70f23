"""Failures of TLS in words; tests/client/test_secured_connections meets them on sockets."""

from __future__ import annotations

import ssl

import pytest

from barnabas.client.errors import ConnectionLost, OtherSecurity, RequestTimedOut
from barnabas.client.tls_failures import is_tls_failure, tls_failure


def failure(reason: str | None, kind: type[ssl.SSLError] = ssl.SSLError) -> ssl.SSLError:
    error = kind(1, "a text with no use")
    error.reason = reason  # type: ignore[assignment]
    error.library = "SSL"
    return error


def unverified(code: int, words: str) -> ssl.SSLError:
    error = failure("CERTIFICATE_VERIFY_FAILED", ssl.SSLCertVerificationError)
    error.verify_code, error.verify_message = code, words  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "kind", "setting"),
    [
        (unverified(20, "unable to get local issuer certificate"), OtherSecurity, "ssl.truststore.location"),
        (unverified(62, "Hostname mismatch"), OtherSecurity, "ssl.endpoint.identification.algorithm"),
        (unverified(64, "IP address mismatch"), OtherSecurity, "ssl.endpoint.identification.algorithm"),
        (unverified(10, "certificate has expired"), OtherSecurity, "certificate has expired"),
        (failure("WRONG_VERSION_NUMBER"), OtherSecurity, "security.protocol"),
        (failure("TLSV13_ALERT_CERTIFICATE_REQUIRED"), OtherSecurity, "ssl.keystore.location"),
        (failure("TLSV1_ALERT_PROTOCOL_VERSION"), OtherSecurity, "ssl.enabled.protocols"),
        (failure("TLSV1_ALERT_INSUFFICIENT_SECURITY"), OtherSecurity, "ssl.cipher.suites"),
        (failure("BAD_RECORD_MAC"), ConnectionLost, "bad record mac"),
        (failure(None, ssl.SSLEOFError), ConnectionLost, "closed the connection"),
        (ConnectionResetError(104, "Connection reset by peer"), ConnectionLost, "closed the connection"),
        (TimeoutError(), RequestTimedOut, "within 30000 ms"),
    ],
)
def test_each_failure_says_what_to_look_at(error: OSError, kind: type[Exception], setting: str) -> None:
    found = tls_failure("h:1", error, 30_000)
    assert type(found) is kind
    assert "h:1" in found.message
    assert setting in found.message
    assert "\n" not in found.message


def test_only_failures_of_tls_count_as_such() -> None:
    assert is_tls_failure(failure("X"))
    assert not is_tls_failure(ConnectionResetError())
    assert not is_tls_failure(TimeoutError())

"""Failures of TLS in words: what is wrong, and which setting to look at.

    what OpenSSL says                                   what it means for a client of Kafka
    certificate verify failed                           the trust store does not know the issuer; another host's name; its time is over
    alert from the broker                               it rejects the client's certificate, or misses one
    wrong version number                                bytes that are not TLS: a listener without it, or another server
    the end, or a reset, in the middle of a handshake   mostly a listener without TLS, which takes the first bytes for a frame's size

The first three are final; a handshake that only ends may be a broker that stops.

Sources: RFC 8446 6 (alerts); OpenSSL's `X509_V_ERR_…`.
"""

from __future__ import annotations

from barnabas.client.errors import ConnectionLost, OtherSecurity, RequestTimedOut
from barnabas.protocol.errors import KafkaError

__all__ = ["is_tls_failure", "tls_failure"]

_EXPIRED, _NOT_YET_VALID = 10, 9
_OTHER_NAMES = (62, 64)
"""The certificate is for another host name, or for another IP address."""
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "UNKNOWN_PROTOCOL",
    "RECORD_LAYER_FAILURE",
)
_NO_COMMON_VERSION = ("ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")
_NO_COMMON_SUITE = ("ALERT_INSUFFICIENT_SECURITY", "NO_CIPHERS_AVAILABLE")


def is_tls_failure(error: OSError) -> bool:
    """Return whether TLS failed, and not what carries it."""
    # Every failure of `ssl` has a reason; the module itself is not imported for a plain connection.
    return hasattr(error, "reason") and hasattr(error, "library")


def tls_failure(address: str, error: OSError, timeout_ms: int) -> KafkaError:
    """Return the error for a connection whose TLS failed, in the handshake or later."""
    if isinstance(error, TimeoutError):
        return RequestTimedOut(f"{address} did not answer the TLS handshake within {timeout_ms} ms")
    reason = str(getattr(error, "reason", None) or "")
    code = getattr(error, "verify_code", None)
    if code is not None:
        return OtherSecurity(_not_trusted(address, code, str(getattr(error, "verify_message", ""))))
    if any(each in reason for each in _NOT_TLS):
        return OtherSecurity(f"{address} does not speak TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT")
    if any(each in reason for each in _NO_COMMON_VERSION):
        return OtherSecurity(f"no common version of TLS with {address}: look at ssl.enabled.protocols")
    if any(each in reason for each in _NO_COMMON_SUITE):
        return OtherSecurity(f"no common cipher suite with {address}: look at ssl.cipher.suites")
    if "ALERT" in reason:
        return OtherSecurity(_alert(address, reason))
    if "EOF" in reason or not reason or "EOF" in type(error).__name__:
        return ConnectionLost(f"{address} closed the connection during the TLS handshake")
    return ConnectionLost(f"TLS with {address} failed: {reason.replace('_', ' ').lower()}")


def _not_trusted(address: str, code: int, words: str) -> str:
    if code in _OTHER_NAMES:
        return (
            f"the certificate of {address} is for another host: use a name that it has,"
            " or look at ssl.endpoint.identification.algorithm"
        )
    if code in (_EXPIRED, _NOT_YET_VALID):
        return f"the certificate of {address} is not valid now ({words}): renew it at the broker"
    return f"the certificate of {address} is not trusted ({words}): put its issuer into ssl.truststore.location"


def _alert(address: str, reason: str) -> str:
    alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
    return f"{address} rejects the client's certificate, or misses one ({alert}): look at ssl.keystore.location"

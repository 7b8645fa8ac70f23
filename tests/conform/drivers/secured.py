"""How a Python driver connects: settings for its library from the file that `CARD_SECURITY` names (see protocol.md beside this file).

Without that variable each function returns nothing: the listener is a plain one.
"""

from __future__ import annotations

import json
import os
import ssl
from pathlib import Path
from typing import Any


def way() -> dict[str, Any] | None:
    """Return the file's content: protocol, mechanism, user, password, ca, certificate, key."""
    name = os.environ.get("CARD_SECURITY")
    return json.loads(Path(name).read_text()) if name else None


def librdkafka() -> dict[str, str]:
    """Return settings by librdkafka's names."""
    found = way()
    if found is None:
        return {}
    settings = {"security.protocol": found["protocol"], "ssl.ca.location": found["ca"]}
    if found["certificate"]:
        settings |= {"ssl.certificate.location": found["certificate"], "ssl.key.location": found["key"]}
    if found["mechanism"]:
        settings |= {
            "sasl.mechanism": found["mechanism"],
            "sasl.username": found["user"],
            "sasl.password": found["password"],
        }
    return settings


def kafka_python() -> dict[str, Any]:
    """Return keyword arguments of a client of kafka-python."""
    found = way()
    if found is None:
        return {}
    settings = {
        "security_protocol": found["protocol"], "ssl_cafile": found["ca"], "ssl_certfile": found["certificate"],
        "ssl_keyfile": found["key"],
    }  # fmt: skip
    return settings | _login(found)


def aiokafka() -> dict[str, Any]:
    """Return keyword arguments of a client of aiokafka."""
    found = way()
    if found is None:
        return {}
    context = ssl.create_default_context(cafile=found["ca"])
    if found["certificate"]:
        context.load_cert_chain(found["certificate"], found["key"])
    return {"security_protocol": found["protocol"], "ssl_context": context} | _login(found)


def _login(found: dict[str, Any]) -> dict[str, Any]:
    if not found["mechanism"]:
        return {}
    return {
        "sasl_mechanism": found["mechanism"], "sasl_plain_username": found["user"], "sasl_plain_password": found["password"],
    }  # fmt: skip

"""How a Python driver connects: settings for its library from the file that `CARD_SECURITY` names (see protocol.md beside this file).

Without that variable each function returns nothing: the listener is a plain one.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.request
from pathlib import Path
from typing import Any


def way() -> dict[str, Any] | None:
    """Return the file's content; protocol.md lists its fields."""
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
    if found["mechanism"] == "OAUTHBEARER":
        settings |= {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": found["token_url"],
            "sasl.oauthbearer.client.id": found["user"],
            "sasl.oauthbearer.client.secret": found["password"],
        }
    elif found["mechanism"]:
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
    if found["token_url"]:
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            def token(self) -> str:
                return token_of(found)

        return settings | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Provider()}
    return settings | _login(found)


def aiokafka() -> dict[str, Any]:
    """Return keyword arguments of a client of aiokafka."""
    found = way()
    if found is None:
        return {}
    context = ssl.create_default_context(cafile=found["ca"])
    if found["certificate"]:
        context.load_cert_chain(found["certificate"], found["key"])
    settings = {"security_protocol": found["protocol"], "ssl_context": context}
    if found["token_url"]:
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):
            async def token(self) -> str:
                return token_of(found)

        return settings | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Provider()}
    return settings | _login(found)


def token_of(found: dict[str, Any]) -> str:
    """Return a token, which the token server gives for the client's id and secret."""
    basic = base64.b64encode(f"{found['user']}:{found['password']}".encode()).decode()
    asked = urllib.request.Request(
        found["token_url"], b"grant_type=client_credentials", {"Authorization": f"Basic {basic}"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return str(json.load(answer)["access_token"])


def _login(found: dict[str, Any]) -> dict[str, Any]:
    if not found["mechanism"]:
        return {}
    return {
        "sasl_mechanism": found["mechanism"], "sasl_plain_username": found["user"], "sasl_plain_password": found["password"],
    }  # fmt: skip

"""A user of SCRAM as `--add-scram` of Kafka's `kafka-storage` names one.

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

- Values may be in double quotes; commas separate the parts, so no value has one. Salts are base64.
- The password may be missing: then it is given in another way, where it is no argument.
- No error has a part of the text, which may be a password.

Source: Kafka's `ScramParser`; KIP-900.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from barnabas.security.sasl.scram_keys import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_of_password,
    credential_of_salted_password,
    new_salt,
)

__all__ = ["ScramArgument", "parse_scram_argument"]

_PARTS = ("name", "salt", "iterations", "password", "saltedpassword")


class ScramArgument(NamedTuple):
    """A user to be created.

    Attributes:
        salt: None for a random one.
        password, salted: at most one of them is not None; the other one, or neither, is given.
    """

    mechanism: ScramMechanism
    name: str
    iterations: int
    salt: bytes | None
    password: str | None
    salted: bytes | None

    def __repr__(self) -> str:
        return f"<ScramArgument {self.mechanism.label} {self.name!r}>"

    @property
    def needs_password(self) -> bool:
        return self.password is None and self.salted is None

    def credential(self, random: Callable[[int], bytes]) -> ScramCredential:
        """Return what a server keeps of it.

        Args:
            random: returns that many random bytes, `os.urandom`.
        """
        salt = new_salt(random) if self.salt is None else self.salt
        if self.salted is not None:
            return credential_of_salted_password(self.mechanism, self.salted, salt, self.iterations)
        assert self.password is not None, "a user without a password"
        return credential_of_password(self.mechanism, self.password, salt, self.iterations)


def parse_scram_argument(text: str) -> ScramArgument:
    """Return the user in an argument.

    Raises:
        ValueError: why it is not one, in one line.
    """
    label, equals, config = text.strip().partition("=")
    if not equals:
        raise ValueError("expected MECHANISM=[name=NAME], such as 'SCRAM-SHA-512=[name=alice]'")
    mechanism = ScramMechanism.of(label)
    if mechanism is None:
        raise ValueError("the mechanism must be one of " + ", ".join(each.label for each in ScramMechanism))
    if not (config.startswith("[") and config.endswith("]") and len(config) > 1):
        raise ValueError(f"expected {label}=[…], with brackets")
    parts = _parts(config[1:-1])
    name = parts.get("name")
    if not name:
        raise ValueError("name is missing: write [name=NAME]")
    salt, password = _bytes(parts, "salt"), parts.get("password")
    # As in Kafka, a password outweighs a salted one.
    salted = _bytes(parts, "saltedpassword") if password is None else None
    if salted is not None and salt is None:
        raise ValueError("saltedpassword needs salt, too")
    return ScramArgument(mechanism, name, _iterations(parts.get("iterations")), salt, password, salted)


def _parts(text: str) -> dict[str, str]:
    parts = {}
    for part in text.rstrip(",").split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError("a part has no equals sign; no value may have a comma")
        if key not in _PARTS:
            raise ValueError(f"a part has an unknown name: the names are {', '.join(_PARTS)}")
        if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
            value = value[1:-1]
        parts[key] = value
    return parts


def _bytes(parts: dict[str, str], key: str) -> bytes | None:
    text = parts.get(key)
    if text is None:
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{key} is not valid base64") from None


def _iterations(text: str | None) -> int:
    if text is None:
        return MIN_ITERATIONS
    if not re.fullmatch(r"[0-9]{1,9}", text) or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ValueError(f"iterations must be from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)

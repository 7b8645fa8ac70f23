"""Settings that ask for protection: TLS, logins, ACLs, policies, delegation tokens.

This broker gives none of it, so such a setting is rejected by name, at the start and when it is altered: a broker must not serve
everybody while its owner believes that it does not. A setting asks for protection unless its value

- is empty,
- is Kafka's default (a list in any order), or
- means "no protection", as `allow.everyone.if.no.acl.found=true` does.

Names of one listener (`listener.name.external.ssl.client.auth`) count like the name behind the prefix. Text of a password never
leaves this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.metadata.config_schema import ConfigKey
from barnabas.printable import printable

__all__ = ["AUTHORIZER_SETTINGS", "HIDDEN", "REMEDY", "is_secret", "shown", "unserved"]

HIDDEN = "[hidden]"
"""What Kafka prints in place of a password."""
REMEDY = (
    "barnabas has no TLS, no logins and no ACLs yet: everybody who reaches its port may read and write. "
    "Remove this to run it without protection"
)
AUTHORIZER_SETTINGS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Settings that only an authorizer reads, so that Kafka does not list them."""

_NAME = re.compile(
    r"(?:listener\.name\..+?\.)?"
    r"((?:ssl|sasl|delegation\.token|password\.encoder)\..+"
    r"|security\.(?:(?:inter\.broker\.)?protocol|providers)"
    r"|authorizer\.class\.name|super\.users|allow\.everyone\.if\.no\.acl\.found"
    r"|principal\.builder\.class|connections\.max\.reauth\.ms|(?:create\.topic|alter\.config)\.policy\.class\.name)"
)
# For names that the table of settings does not have.
_NO_PROTECTION = {"allow.everyone.if.no.acl.found": "true", "security.protocol": "PLAINTEXT"}
_SECRET = re.compile(r"password|passphrase|secret|jaas|credential|token|(?:^|\.)key$", re.IGNORECASE)


def unserved(name: str, text: str, keys: Mapping[str, ConfigKey]) -> bool:
    """Return whether a setting asks for protection.

    Args:
        keys: the broker's settings.

    Raises:
        ConfigError: the text is not a value of the setting.
    """
    found = _NAME.fullmatch(name)
    if found is None or not text.strip():
        return False
    own = found[1]
    if own not in keys:
        return text.strip().lower() != _NO_PROTECTION.get(own, "").lower()
    value, default = keys[own].parse(text), keys[own].default_value()
    if isinstance(value, tuple) and isinstance(default, tuple):
        return set(value) != set(default)
    return value != default


def is_secret(name: str, keys: Mapping[str, ConfigKey]) -> bool:
    """Return whether a setting's value must not be shown: it is a password, or an unknown name that may be one's."""
    key = keys.get(name)
    return _SECRET.search(name) is not None if key is None else key.sensitive


def shown(name: str, text: str, keys: Mapping[str, ConfigKey]) -> str:
    """Return `name=value` for an error, the name alone if the value must not be shown."""
    return printable(name if is_secret(name, keys) else f"{name}={text}")

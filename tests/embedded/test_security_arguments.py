"""The arguments of security: what has no meaning alone, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.config import ConfigError
from barnabas.embedded.security_arguments import checked_security

ACL = "--allow-principal User:alice --operation read --operation write --topic orders"


def test_nothing_is_plain_text() -> None:
    assert checked_security(None, None, None) is None
    assert checked_security("PLAINTEXT", {}, None) is None


def test_users_and_acls_are_read() -> None:
    found = checked_security("SASL_SSL", {"alice": "alice-secret"}, [ACL])
    assert found is not None
    assert found.acls is not None
    assert (found.users, len(found.acls)) == ({"alice": "alice-secret"}, 2)
    assert "alice-secret" not in repr(found)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((None, {"alice": "secret-1"}, None), ConfigError, 'users= need a listener that asks for a login: pass security="SASL_SSL"'),
        ((None, None, [ACL]), ConfigError, "acls= need a listener that knows its clients"),
        (("SASLSSL", None, None), ConfigError, "security='SASLSSL' is not one of SSL, SASL_PLAINTEXT, SASL_SSL; did you mean SASL_SSL?"),
        ((7, None, None), TypeError, "security=7 is not text"),
        (("SSL", ["alice"], None), TypeError, "users= is a list: pass a mapping"),
        (("SASL_SSL", {"a,b": "secret-1"}, None), ConfigError, "is not a user's name here"),
        (("SSL", {"node-1": "secret-1"}, [ACL]), ConfigError, "users={'node-1': …} is the name in a node's certificate"),
        (("SASL_SSL", {"alice": ""}, None), ConfigError, "users={'alice': …} has no password"),
        (("SASL_SSL", {}, ACL), TypeError, "acls= is text: pass a list of texts"),
        (("SASL_SSL", {}, [ACL, 7]), TypeError, "acls[1] is a int: pass text"),
        (("SASL_SSL", {}, [ACL, "--topic orders"]), ConfigError, "acls[1]: name who may or may not"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(arguments: tuple[Any, Any, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as raised:
        checked_security(*arguments)
    assert words in str(raised.value)
    assert "secret-1" not in str(raised.value)

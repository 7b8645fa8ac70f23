"""The settings of the authorizer."""

from __future__ import annotations

import pytest

from barnabas.config.authorizer_settings import STANDARD_AUTHORIZER, authorizer_of, of_authorizer
from barnabas.config.config import BrokerConfig
from barnabas.metadata.config_schema import ConfigError
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.security.principal import Principal

CLASS = {"authorizer.class.name": STANDARD_AUTHORIZER}


def test_without_a_class_everything_is_allowed() -> None:
    assert authorizer_of({}) is None
    assert authorizer_of({"authorizer.class.name": " "}) is None


def test_super_users_and_the_default() -> None:
    authorizer = authorizer_of(
        {**CLASS, "super.users": "User:a; User:CN=b,O=c", "allow.everyone.if.no.acl.found": "True"}
    )
    assert authorizer is not None
    assert authorizer.super_users == {"User:a", "User:CN=b,O=c"}
    authorizer.replace({})
    assert authorizer.is_allowed(Principal("User", "x"), "1.2.3.4", AclOperation.READ, ResourceType.TOPIC, "t")
    assert of_authorizer(CLASS) == {"authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found"}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}, "StandardAuthorizer"),
        ({**CLASS, "super.users": "alice"}, "super.users"),
        ({**CLASS, "allow.everyone.if.no.acl.found": "perhaps"}, "allow.everyone.if.no.acl.found"),
        ({"super.users": "User:a"}, "super.users"),
    ],
)
def test_what_protects_nothing_stops_the_start(settings: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        BrokerConfig.from_properties({"log.dirs": "/data", **settings})

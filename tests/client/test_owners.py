"""Owners of topics on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin import Admin, NewTopic, TopicMetadata
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.client.owners import OWNERS_TOPIC


@pytest.fixture
def admin() -> Iterator[Admin]:
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as found:
        found.create_topics([NewTopic("orders", 1, 1), NewTopic("payments", 1, 1)])
        yield found


def described(admin: Admin) -> dict[str, TopicMetadata]:
    return {each.name: each for each in admin.list_topics()}


def owners(admin: Admin) -> dict[str, str]:
    return admin.list_owners(described(admin).values())


def test_an_owner_is_kept_changed_and_removed(admin: Admin) -> None:
    assert owners(admin) == {}
    assert OWNERS_TOPIC not in {each.name for each in admin.list_topics(internal=True)}, "to ask creates nothing"
    for owner, expected in (("shop", {"orders": "shop"}), ("Zoë", {"orders": "Zoë"}), ("", {})):
        admin.set_owner(described(admin)["orders"], owner, now_ms=1)
        assert owners(admin) == expected
    assert OWNERS_TOPIC not in described(admin), "it is an internal topic"


def test_a_topic_that_is_created_again_has_no_owner(admin: Admin) -> None:
    for each in described(admin).values():
        admin.set_owner(each, "shop", now_ms=1)
    admin.delete_topics(["orders"])
    admin.create_topics([NewTopic("orders", 1, 1)])
    assert owners(admin) == {"payments": "shop"}


def test_an_owner_of_a_newer_release_is_not_guessed(admin: Admin) -> None:
    CompactedTopic(admin.cluster, OWNERS_TOPIC).put("orders", b'{"version":2}', 1)
    with pytest.raises(ValueError, match="owner of version 2: this release is too old"):
        owners(admin)

"""A plan changes nothing; what it says is what is done."""

from __future__ import annotations

from barnabas.client.admin import Admin
from barnabas.console.changes.given import Given
from barnabas.console.changes.topics import creation
from barnabas.protocol.errors import KafkaError


def test_a_plan_changes_nothing_before_it_is_carried_out(admin: Admin) -> None:
    given = Given({"name": "planned", "partitions": "2"})
    planned = creation(admin, given, 0)
    assert isinstance(admin.describe_topics(["planned"])["planned"], KafkaError)
    assert (planned.does, planned.on, planned.destroys) == ("Create topic planned", "topic planned", None)
    done = planned.carry_out(admin, given)
    assert not done.failures
    assert [each.name for each in admin.list_topics() if each.name == "planned"] == ["planned"]

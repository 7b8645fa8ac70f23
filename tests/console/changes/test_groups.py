"""Groups: new offsets, no offsets, no group."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from tests.console.forms import carry_out, change, preview
from tests.console.reading import printed

PARTITION = TopicPartition("read", 0)
GROUP = "<script>readers"


@pytest.fixture
def group(writer: TestClient, admin: Admin) -> str:
    if "read" not in {each.name for each in admin.list_topics()}:
        change(writer, "topic-create", name="read")
        for number in range(4):
            change(writer, "record-produce", topic="read", value=str(number))
    admin.alter_group_offsets(GROUP, {PARTITION: CommittedOffset(4, "")})
    return GROUP


def committed(admin: Admin) -> int | None:
    found = admin.list_group_offsets(GROUP).get(PARTITION)
    return None if found is None else found.offset


def test_a_reset(changed: barnabas.Broker, writer: TestClient, admin: Admin, group: str) -> None:
    shown = preview(writer, "group-reset", id=group, topics="read", how="--to-offset", value="1")
    words = ("group", "reset-offsets", group, "--topic", "read", "--to-offset", "1")
    assert shown.rows == printed(changed.bootstrap_servers, *words)
    assert (shown.rows[0]["current_offset"], shown.rows[0]["new_offset"], committed(admin)) == (4, 1, 4)
    assert carry_out(writer, shown).rows[0]["status"] == "set"
    assert committed(admin) == 1


def test_a_reset_to_the_end_is_the_end_of_the_preview(writer: TestClient, admin: Admin, group: str) -> None:
    shown = preview(writer, "group-reset", id=group, how="--to-latest")
    end = shown.rows[0]["new_offset"]
    change(writer, "record-produce", topic="read", value="later")
    carry_out(writer, shown)
    assert committed(admin) == end


def test_a_group_that_went_on_is_looked_at_again(writer: TestClient, admin: Admin, group: str) -> None:
    shown = preview(writer, "group-reset", id=group, how="--shift-by", value="-1")
    assert shown.rows[0]["new_offset"] == 3
    admin.alter_group_offsets(group, {PARTITION: CommittedOffset(2, "")})
    assert "has changed since the preview" in carry_out(writer, shown).error
    assert committed(admin) == 2


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"how": "--to-offset"}, "An offset is missing."),
        ({"how": "--shift-by", "value": "x"}, "The number is not a whole number: x."),
        ({"how": "--by-duration", "value": "soon"}, "soon"),
        ({"how": "--to-datetime", "value": "<b>"}, "<b>"),
        ({"how": "--from-file"}, "The place must be one of"),
        ({"how": "--to-earliest", "topics": "read:x"}, "is not TOPIC or TOPIC:0,1"),
        ({"how": "--to-earliest", "topics": "absent"}, "Topic absent does not exist"),
    ],
)
def test_what_is_not_a_place(writer: TestClient, group: str, fields: dict[str, str], sentence: str) -> None:
    refused = preview(writer, "group-reset", id=group, **fields)
    assert refused.status in (400, 409)
    assert sentence in refused.error


def test_offsets_are_deleted(writer: TestClient, admin: Admin, group: str) -> None:
    shown = preview(writer, "group-delete-offsets", id=group, topics="read")
    assert shown.data["destroys"] == group
    assert carry_out(writer, shown).rows[0]["status"] == "deleted"
    assert committed(admin) is None


def test_a_group_is_deleted(writer: TestClient, admin: Admin, group: str) -> None:
    assert change(writer, "group-delete", id=group).rows == [{"group": group, "status": "deleted"}]
    assert committed(admin) is None
    assert "does not exist" in preview(writer, "group-delete", id="absent").error

"""The oldest records of a topic."""

from __future__ import annotations

from starlette.testclient import TestClient

from barnabas.client.admin import EARLIEST, Admin, TopicPartition, result
from tests.console.forms import carry_out, change, preview

PARTITION = TopicPartition("trimmed", 0)


def test_a_preview_fixes_the_offsets(writer: TestClient, admin: Admin) -> None:
    change(writer, "topic-create", name="trimmed")
    for number in range(3):
        change(writer, "record-produce", topic="trimmed", value=str(number))
    shown = preview(writer, "topic-trim", name="trimmed", before="end")
    assert (shown.data["destroys"], shown.rows[0]["new_start_offset"], shown.rows[0]["offsets"]) == ("trimmed", 3, 3)
    # A record that is written after the preview stays.
    change(writer, "record-produce", topic="trimmed", value="later")
    assert carry_out(writer, shown).rows[0]["status"] == "deleted"
    assert result(admin.list_offsets({PARTITION: EARLIEST})[PARTITION]).offset == 3


def test_what_is_not_a_place(writer: TestClient) -> None:
    change(writer, "topic-create", name="untrimmed")
    for fields in (
        {"before": "<b>"},
        {"before": "1:2"},
        {"before": "end", "partitions": "x"},
        {"before": "end", "offsets": "0:x"},
    ):
        assert preview(writer, "topic-trim", name="untrimmed", **fields).status == 400
    for fields in ({"before": "99"}, {"before": "end", "partitions": "7"}):
        assert preview(writer, "topic-trim", name="untrimmed", **fields).status == 409
    assert "Topic absent does not exist" in preview(writer, "topic-trim", name="absent", before="end").error

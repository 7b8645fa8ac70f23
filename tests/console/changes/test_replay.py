"""Replays from the console."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from starlette.testclient import TestClient

import barnabas
from barnabas.console.changes import replay
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.changes.replay import Part
from barnabas.console.masked_letters import refuse_telling
from barnabas.decoding.masks import MaskRule, Masks
from barnabas.retries.replayed import Progress
from tests.console.forms import carry_out, lines, preview
from tests.console.reading import html, printed
from tests.console.writing import create, numbered, write
from tests.retries.records import committed

CHANGE = "replay"


def prepare(broker: barnabas.Broker, source: str, target: str, count: int = 6) -> str:
    bootstrap = broker.bootstrap_servers
    create(bootstrap, source, 2)
    create(bootstrap, target, 2)
    write(bootstrap, source, [*numbered(count), *numbered(count, 1)])
    return bootstrap


@pytest.mark.slow
def test_a_part_with_each_form_and_the_command_goes_on(
    changed: barnabas.Broker, writer: TestClient, audit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "SENT_MAX", 4)
    bootstrap = prepare(changed, "replayed", "replayed-copy")
    assert f"change/{CHANGE}?topic=replayed" in html(writer, "topic", name="replayed")
    fields = {"topic": "replayed", "from": "1", "to": "replayed-copy"}
    shown = preview(writer, CHANGE, **fields)
    line = "barnabas replay replayed --from 1 --to replayed-copy"
    assert (shown.data["command"], shown.data["destroys"]) == (line, "replayed-copy")
    assert (shown.rows[0]["read"], shown.rows[0]["written"], shown.rows[0]["status"]) == (4, 4, "would be sent")
    assert {(each["partition"], each["next"], each["end"]) for each in shown.data["partitions"]} == {
        (0, 1, 6),
        (1, 1, 6),
    }
    assert "6 offsets are left for the same replay again, or for the command" in " ".join(shown.data["notes"])
    # Records that are written after the preview are not of this replay.
    write(bootstrap, "replayed", numbered(3))
    done = carry_out(writer, shown)
    assert (done.status, done.rows[0]["written"], done.rows[0]["status"]) == (200, 4, "sent in part")
    assert carry_out(writer, shown).status == 409
    assert lines(audit)[-1]["rows"] == done.rows
    assert len(committed(bootstrap, "replayed-copy", 2)) == 4
    shown = preview(writer, CHANGE, **fields)
    assert shown.rows[0]["written"] == 8
    assert any("earlier runs have read 4 records and sent 4" in each for each in shown.data["notes"])
    (row,) = printed(bootstrap, *line.split()[1:])
    assert (row["written"], row["status"]) == (10, "sent")
    assert "is finished: it has sent 10 records" in carry_out(writer, shown).error
    sent = committed(bootstrap, "replayed-copy", 2)
    assert sorted((each.partition, each.value) for each in sent) == sorted(
        (partition, b'{"n": %d}' % number) for partition in (0, 1) for number in range(1, 6)
    )


@pytest.mark.slow
def test_what_is_chosen_and_how_far_open_transactions_let_it(changed: barnabas.Broker, writer: TestClient) -> None:
    bootstrap = prepare(changed, "opened", "opened-copy", 3)
    held = Producer({"bootstrap.servers": bootstrap, "transactional.id": "held-by-replay"})
    held.init_transactions()
    held.begin_transaction()
    held.produce("opened", b"held", key=b"k1", partition=1)
    held.flush()
    fields = {
        "topic": "opened",
        "from": "start",
        "until": "9",
        "to": "opened-copy",
        "filters": "key=k1",
        "name": "some",
    }
    shown = preview(writer, CHANGE, **fields)
    assert (shown.rows[0]["read"], shown.rows[0]["written"]) == (6, 2)
    assert "--until 9 --filter key=k1 --to opened-copy --name some" in shown.data["command"]
    assert "a transaction is open: 1 offset is left" in " ".join(shown.data["notes"])
    assert "is not opened-copy" in carry_out(writer, shown, typed="opened").error
    # The preview counts once, and its successor is another one.
    shown = preview(writer, CHANGE, **fields)
    assert carry_out(writer, shown).rows[0]["status"] == "sent in part"
    held.commit_transaction()
    done = carry_out(writer, preview(writer, CHANGE, **fields))
    assert (done.rows[0]["written"], done.rows[0]["status"]) == (3, "sent")
    assert [each.value for each in committed(bootstrap, "opened-copy", 2)] == [b'{"n": 1}', b'{"n": 1}', b"held"]
    assert "is finished" in preview(writer, CHANGE, **fields).error


@pytest.mark.slow
def test_what_is_refused(changed: barnabas.Broker, writer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(changed, "unsent", "unsent-copy", 1)
    create(changed.bootstrap_servers, "unsent-narrow")
    for fields, sentence in (
        ({"topic": "absent"}, "does not exist"),
        ({"to": "unsent"}, "cannot be replayed onto itself"),
        ({"to": "unsent-narrow"}, "has fewer partitions (1)"),
        ({"from": "no-cut"}, "Cut no-cut does not exist"),
        ({"from": "a b"}, "is not a valid offset"),
        ({"from": "1:2", "until": "3"}, "“From” is a range, which has an end: leave out “Until”."),
        ({"filters": "kye=1"}, "is not one of key, value"),
        ({"name": "a/b"}, "is not a valid name"),
        ({"places": "0:0:1"}, "The offsets of the preview are not those of this topic."),
        ({"places": "0:0:1:1"}, "The offsets of the preview are not those of this topic."),
        ({"places": f"0:0:1:{2**63} 1:0:1:1"}, "The offsets of the preview are not those of this topic."),
    ):
        refused = preview(writer, CHANGE, **{"topic": "unsent", "from": "start", "to": "unsent-copy", **fields})
        assert refused.status in (400, 409)
        assert sentence in refused.error
    monkeypatch.setattr(replay, "PARTITIONS_MAX", 1)
    many = preview(writer, CHANGE, **{"topic": "unsent", "from": "start", "to": "unsent-copy"})
    assert "has 2 partitions, and the console replays 1" in many.error


def test_what_is_left_of_a_part() -> None:
    begun = Progress("r", "a", "1", "b", "2", "", {0: (1, 9), 1: (2, 2)})
    done = Progress("r", "a", "1", "b", "2", "", {0: (5, 9), 1: (2, 2)}, 4, 3)
    part = Part(begun, done, {0: 5, 1: 2}, True)
    assert (part.sent, part.left, part.places()) == (3, 4, "0:1:5:9 1:2:2:2")
    assert [each.split(":")[0] for each in part.notes()[1:]] == ["one form sends 10000 records and reads 200000"]
    assert len(part._replace(until={0: 9, 1: 2}).notes()) == 1


@pytest.mark.parametrize(("filters", "to"), [("key=4111", "masked-too"), ("", "open")])
def test_it_tells_nothing_that_is_masked(filters: str, to: str) -> None:
    masks = Masks([MaskRule(("cards", "masked-too"), ("key",))])
    with pytest.raises(BadForm, match="this console masks key of topic cards"):
        refuse_telling(masks, Given({"topic": "cards", "to": to, "filters": filters}))
    refuse_telling(masks, Given({"topic": "cards", "to": "masked-too", "filters": ""}))

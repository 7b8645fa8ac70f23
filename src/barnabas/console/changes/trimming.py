"""The oldest records of a topic: `barnabas topic trim`."""

from __future__ import annotations

from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.partitions import partitions_of
from barnabas.cli.topic_trim import new_starts, place_of, trimmed
from barnabas.client.admin import Admin, TopicPartition
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.changes.topics import TOPIC, described
from barnabas.console.page import Field
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.printable import printable

FIELDS = (
    TOPIC,
    Field("partitions", "Partitions", hint="all; or 0,3"),
    Field("before", "Delete the records before", is_required=True, hint="47, end, -3, +2, @-7d, @2026-11-21T10:00:00"),
    Field("offsets", "Offsets of the preview", kind="hidden"),
)


def trim(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan the deletion of records; the preview fixes the offsets, so that nothing written later is deleted."""
    name = given.required("name", "the name of the topic")
    topic = described(admin, name)
    numbers = given.text("partitions").strip()
    place = given.required("before", "the place before which records are deleted").strip()
    try:
        partitions = partitions_of(admin, [f"{name}:{numbers}" if numbers else name])
        point = place_of(place, now_ms)
    except ValueError as error:
        raise BadForm(str(error).removeprefix("--before ")) from None
    bounds = log_bounds(admin, partitions)
    fixed = given.text("offsets")
    wanted = _read(name, fixed, bounds) if fixed else new_starts(admin, point, bounds)
    return Planned(
        f"Delete the oldest records of topic {printable(name)}",
        f"topic {name}",
        trimmed(admin, bounds, wanted, dry_run=True),
        lambda admin, _: trimmed(admin, bounds, wanted, dry_run=False),
        destroys=name,
        fixed={"offsets": ",".join(f"{where.partition}:{offset}" for where, offset in wanted.items())},
        basis=uuid_to_str(topic.topic_id),
        after=("topic", {"name": name}),
    )


def _read(
    topic: str, text: str, bounds: dict[TopicPartition, tuple[int | None, int | None]]
) -> dict[TopicPartition, int]:
    try:
        pairs = [part.split(":") for part in text.split(",")]
        found = {TopicPartition(topic, int(partition)): int(offset) for partition, offset in pairs}
    except ValueError:
        raise BadForm("the offsets of the preview were changed") from None
    if found.keys() != bounds.keys() or min(found.values()) < 0:
        raise BadForm("the offsets of the preview were changed")
    return found

"""Topics: `barnabas topic create`, `topic grow` and `topic delete`."""

from __future__ import annotations

from barnabas.cli.done import Done
from barnabas.cli.output import found_rows
from barnabas.cli.topic import created_topics, listed_topics
from barnabas.cli.topic_delete import deleted_topics
from barnabas.cli.topic_grow import grown_plainly
from barnabas.cli.wording import as_typed, counted
from barnabas.client.admin import Admin, NewTopic, TopicMetadata, result
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import INT_16_MAX, Given
from barnabas.console.page import Field
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.printable import printable

TOPIC = Field("name", "Topic", is_required=True)
CREATION_FIELDS = (
    TOPIC,
    Field("partitions", "Partitions", hint="the broker's num.partitions"),
    Field("replication_factor", "Replicas of each", hint="the broker's default"),
    Field("configs", "Settings, a line each", kind="lines", hint="retention.ms=604800000"),
)
GROWTH_FIELDS = (TOPIC, Field("partitions", "Partitions in all", is_required=True))
DELETION_FIELDS = (TOPIC, Field("internal", "It may be an internal topic", kind="box"))


def creation(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan a new topic."""
    name = given.required("name", "the name of the topic")
    partitions = given.number("partitions", "the number of partitions", least=1)
    replicas = given.number("replication_factor", "the number of replicas", least=1, most=INT_16_MAX)
    wanted = [NewTopic(name, partitions or -1, replicas or -1, given.pairs("configs"))]
    return Planned(
        f"Create topic {printable(name)}",
        f"topic {name}",
        created_topics(admin, wanted, dry_run=True).whole(),
        lambda admin, _: created_topics(admin, wanted, dry_run=False),
        after=("topic", {"name": name}),
    )


def growth(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan more partitions; the command can also keep keys in order, which takes minutes."""
    name = given.required("name", "the name of the topic")
    total = given.required_number("partitions", "the number of partitions", least=1)
    topic = described(admin, name)
    ordered = f"`barnabas topic grow {as_typed(name)} -p {total} --ordered` lets groups read each key in order"
    preview = grown_plainly(admin, topic, total, dry_run=True)
    return Planned(
        f"Grow topic {printable(name)} to {counted(total, 'partition')}",
        f"topic {name}",
        preview._replace(notes=[*preview.notes, ordered]),
        lambda admin, _: grown_plainly(admin, topic, total, dry_run=False),
        after=("topic", {"name": name}),
    )


def deletion(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan the end of a topic."""
    name = given.required("name", "the name of the topic")
    internal = given.is_ticked("internal")
    preview = deleted_topics(admin, [name], internal=internal, dry_run=True).whole()
    topic = described(admin, name)
    return Planned(
        f"Delete topic {printable(name)} with all its records",
        f"topic {name}",
        preview,
        lambda admin, _: deleted_topics(admin, [name], internal=internal, dry_run=False),
        before=[("topic", "What is lost", _size(admin, topic))],
        destroys=name,
        basis=uuid_to_str(topic.topic_id),
        after=("topics", {}),
    )


def described(admin: Admin, name: str) -> TopicMetadata:
    """Return a topic.

    Raises:
        KafkaError: it does not exist.
    """
    found: TopicMetadata = result(admin.describe_topics([name])[name])
    return found


def _size(admin: Admin, topic: TopicMetadata) -> Done:
    try:
        return Done(listed_topics(admin, [topic], sizes=True))
    except KafkaError:  # This user may delete the topic, and not see its log directories.
        return Done(found_rows(("NAME", "PARTITIONS"), [(topic.name, len(topic.partitions))]))

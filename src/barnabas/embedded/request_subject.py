"""The subject of a request: its topics with their partitions, its groups, its transactional id.

The message definitions say which fields name a topic, a group or a transactional id (`entityType`), so one function reads every API. A
topic that is named by its id has the name that it has in the metadata, if it exists.

- A Fetch of a session is about every partition of its session, also those that it does not repeat (KIP-227).
- FindCoordinator is about the groups whose coordinator it asks for.
- Topics that a Fetch forgets are not its topics.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from barnabas.api.serving.context import AnyContext, RequestContext
from barnabas.embedded.fault_plan import Where
from barnabas.protocol.message import Message
from barnabas.protocol.messages import FetchRequest, FindCoordinatorRequest
from barnabas.protocol.schema import StructSpec

__all__ = ["RequestSubject", "subject_of"]

_PARTITIONS = frozenset({"partition", "partition_index", "partition_indexes", "partitions", "index"})
_NOT_WANTED = frozenset({"forgotten_topics_data"})
_NO_ID = bytes(16)
_GROUP = 0


class RequestSubject(NamedTuple):
    """The subject of a request.

    Attributes:
        topics: the named partitions by topic; none if the request names the topic alone.
        transactional_id: None if the request has none.
    """

    topics: dict[str, set[int]]
    groups: set[str]
    transactional_id: str | None

    def meets(self, where: Where, client_id: str | None) -> bool:
        """Return whether the request is one of those that a fault, or an assertion, names."""
        if where.client_id is not None and where.client_id != client_id:
            return False
        if where.group is not None and where.group not in self.groups:
            return False
        named = self.topics if where.topic is None else {where.topic} & self.topics.keys()
        if where.partition is not None:
            return any(where.partition in self.topics[topic] for topic in named)
        return where.topic is None or bool(named)


def subject_of(context: AnyContext, request: Message, most: int) -> RequestSubject:
    """Return what a request is about.

    Args:
        most: how many partitions to read; a request of more is known by the first ones.
    """
    reading = _Reading(context, most)
    reading.read(request.SPEC.root, request, request.SPEC.structs, None)
    if isinstance(request, FetchRequest) and request.session_epoch > 0 and isinstance(context, RequestContext):
        session = context.services.fetch_sessions.get(request.session_id)
        for each in () if session is None else session.partitions.values():
            reading.add(each.topic or reading.name_of(each.topic_id), (each.index,))
            if reading.left <= 0:
                break
    if isinstance(request, FindCoordinatorRequest) and request.key_type == _GROUP:
        reading.groups.update(filter(None, (request.key, *request.coordinator_keys)))
    return RequestSubject(reading.topics, reading.groups, reading.transactional_id)


class _Reading:
    def __init__(self, context: AnyContext, most: int) -> None:
        self.left = most
        self.topics: dict[str, set[int]] = {}
        self.groups: set[str] = set()
        self.transactional_id: str | None = None
        self._image = context.services.image

    def name_of(self, topic_id: bytes) -> str | None:
        found = self._image().topics.by_id.get(topic_id)
        return None if found is None else found.name

    def add(self, topic: str | None, partitions: Iterable[int]) -> None:
        if topic:
            before = self.topics.setdefault(topic, set())
            had = len(before)
            before.update(partitions)
            self.left -= max(1, len(before) - had)

    def read(self, spec: StructSpec, struct: Any, structs: dict[str, StructSpec], topic: str | None) -> None:
        """Read a struct and those within it; `topic` is the one around it."""
        nested: list[tuple[StructSpec, Any]] = []
        partitions: list[int] = []
        for field in spec.fields:
            value = getattr(struct, field.name)
            if not value and value != 0:
                continue
            if field.is_struct:
                if field.name not in _NOT_WANTED:
                    nested.append((structs[field.type], value if field.is_array else [value]))
            elif field.entity_type == "topicName":
                if field.is_array:
                    for name in value:
                        self.add(name, ())
                else:
                    topic = value
                    self.add(topic, ())
            elif field.type == "uuid" and field.name == "topic_id" and value != _NO_ID:
                topic = self.name_of(value)
                self.add(topic, ())
            elif field.entity_type == "groupId":
                self.groups.update(value if field.is_array else (value,))
            elif field.entity_type == "transactionalId" and not field.is_array:
                self.transactional_id = value
            elif field.type == "int32" and field.name in _PARTITIONS:
                partitions.extend(value if field.is_array else (value,))
        if partitions:
            self.add(topic, partitions)
        for inner, values in nested:
            for value in values:
                if self.left <= 0:
                    return
                self.read(inner, value, structs, topic)

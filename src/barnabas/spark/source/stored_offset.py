"""An offset of a stream as Spark's checkpoint stores it.

Beside the position, which is the JSON of Spark's own Kafka source, it has what makes a batch the same batch for ever,
under keys that no topic can have as its name:

    {"orders": {"0": 42, "1": 40}, "~first": {"orders": {"1": 0}}, "~ids": {"orders": "pS1Cfv5xTVu5e9IDLZ0JZg"}}

- `~first`: where the batch that ends here begins in the partitions that the offset before does not have: in the first
  batch all of them, later those that are new. Spark does not store the first batch's beginning; it asks for it again when
  the batch is repeated, and gets another answer for `latest`, for `-2h`, and for `earliest` after retention.
- `~ids`: the topics' ids. A topic that was deleted and created again has another id.

Offsets without these keys, which older versions stored, are read as well. Another key is that of a newer version, and an
error, because the batch may not be what this version would read. So is an offset of another source, whose checkpoint
it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.spark.source.offsets import Position, from_spark, to_spark

_FIRST = "~first"
_IDS = "~ids"
_WAY_OUT = "Use the checkpointLocation that belongs to this query, or a new one"


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The end of a batch.

    Attributes:
        position: the next offset of each partition.
        first: where the batch begins in partitions that are new to the query.
        topic_ids: the topics' ids as text; empty if unknown.
    """

    position: Position
    first: Position = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what Spark stores; equal offsets are equal text."""
        out: dict[str, Any] = dict(to_spark(self.position))
        if self.first:
            out[_FIRST] = to_spark(self.first)
        topics = {topic for topic, _ in self.position}
        out[_IDS] = {topic: self.topic_ids[topic] for topic in sorted(topics) if topic in self.topic_ids}
        return out

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StoredOffset:
        """Read what `to_json` returned, or a position alone.

        Raises:
            ValueError: a newer version or another source stored it.
        """
        try:
            position, first = from_spark(stored), from_spark(stored.get(_FIRST, {}))
            ids = dict(stored.get(_IDS, {}))
        except (ValueError, TypeError, AttributeError):
            raise ValueError(
                f'the checkpoint is of a query with another source: its offset is {json.dumps(stored)}, and format("barnabas") '
                f"stores offsets of partitions. {_WAY_OUT}"
            ) from None
        for name in stored:
            if name.startswith("~") and name not in (_FIRST, _IDS):
                raise ValueError(
                    f"the checkpoint is of a newer version of barnabas: its offset has {name}, which this version does not know. "
                    "Install the newer version again, or begin with a new checkpointLocation"
                )
        return cls(position, first, ids)

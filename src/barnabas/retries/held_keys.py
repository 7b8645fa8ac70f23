"""The keys that are held back: a record waits while an earlier record of its key is in a retry topic.

Each partition's records are in the hands of one consumer, in the source topic and in the retry topics alike. So it knows all records of
its keys that are in retry topics: it reads them once when it gets the partition, and then it sends and gets them itself.

- A record is tried only if no record of its key with a lower offset in the source topic is in a retry topic.
- Otherwise it goes to the end of the topic where the first of these is. Its own attempts are not counted up.
- A dead letter holds nothing back: the next record of the key is tried.
- A record without a key waits for nothing.
"""

from __future__ import annotations

from barnabas.retries.record import Record

_Key = tuple[str, int, bytes]


class HeldKeys:
    """The records of a consumer's partitions that are in retry topics, by key."""

    def __init__(self) -> None:
        self._retries: dict[_Key, dict[int, int]] = {}
        """For each key the offsets in the source topic, and the retry whose topic each record is in."""

    def __repr__(self) -> str:
        return f"<HeldKeys keys={len(self._retries)} records={sum(map(len, self._retries.values()))}>"

    def put(self, record: Record, retry: int) -> None:
        """Note that a record is in the topic of a retry; 0 is in none."""
        if record.key is None:
            return
        key = (record.topic, record.partition, record.key)
        if retry:
            self._retries.setdefault(key, {})[record.offset] = retry
        elif found := self._retries.get(key):
            found.pop(record.offset, None)
            if not found:
                del self._retries[key]

    def waits_for(self, record: Record) -> int:
        """Return the retry whose topic has the first record that this one must wait for; 0 if there is none."""
        if record.key is None:
            return 0
        found = self._retries.get((record.topic, record.partition, record.key))
        if not found:
            return 0
        first = min(found)
        return found[first] if first < record.offset else 0

    def clear(self) -> None:
        """Forget everything: the consumer's partitions are given away."""
        self._retries.clear()

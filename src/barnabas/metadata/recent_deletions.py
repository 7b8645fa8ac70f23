"""Names of topics that were deleted a moment ago.

A client that deletes a topic and then asks for its metadata expects an error, not a new topic, even with auto-creation.
The names are from committed metadata, so every broker knows them; a restart forgets them.

Kafka has no such memory: its Metadata API creates the topic again.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.metadata.delta import MetadataDelta

REMEMBERED_MS = 60_000


class RecentDeletions:
    """Remembers each deleted name for a minute.

    Args:
        now_ms: the wall clock, in milliseconds.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._deleted: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        deleted_ms = self._deleted.get(name)
        return deleted_ms is not None and self._now_ms() - deleted_ms < REMEMBERED_MS

    def apply(self, delta: MetadataDelta) -> None:
        """Take the deletions of a commit, and forget old ones."""
        if delta.topics is None or not delta.topics.deleted:
            return
        now_ms = self._now_ms()
        self._deleted = {name: at for name, at in self._deleted.items() if now_ms - at < REMEMBERED_MS}
        self._deleted.update((topic.name, now_ms) for topic in delta.topics.deleted.values())

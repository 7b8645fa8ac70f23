"""A store in memory whose clock is the test's."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.claims.payload_store import PayloadStore, Stored, WrongSize


class MemoryStore(PayloadStore):
    """Payloads in a dict; `now_ms` is the time of the next write."""

    uri = "memory://store"

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.files: dict[str, tuple[bytes, int, int]] = {}
        self._writes = 0

    def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
        self._writes += 1
        self.files[path] = (payload, self.now_ms, self._writes)

    def get(self, path: str, size: int) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        payload = self.files[path][0]
        if len(payload) != size:
            raise WrongSize(len(payload))
        return payload

    def stat(self, path: str) -> Stored | None:
        if path not in self.files:
            return None
        payload, modified_ms, write = self.files[path]
        return Stored(path, len(payload), modified_ms, str(write))

    def list(self, prefix: str) -> Iterator[Stored]:
        for path in list(self.files):
            found = self.stat(path) if path.startswith(f"{prefix}/") else None
            if found is not None:
                yield found

    def delete(self, path: str) -> None:
        self.files.pop(path, None)

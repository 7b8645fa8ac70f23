"""The follower's side of a fetch session: the partitions that the leader knows, and those that the next request must name (KIP-227).

    request                                 response            next request
    id 0, epoch 0, all partitions           id n                id n, epoch 1, only what has changed
                                            id 0: no slot       id 0, epoch 0
    id n, epoch k, changed and forgotten    id n                id n, epoch k + 1
                                            id 0: closed        id 0, epoch 0
    any                                     an error, or none   id n, epoch 0: closes session n and opens another
                                            ID_NOT_FOUND        id 0, epoch 0

An answer must fit its request: it has all partitions of a full request, and only partitions of the session for an incremental one.
Otherwise the follower ignores the answer and sends a full request.

`fetch_session` is the leader's side.

Source: Kafka's `FetchSessionHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.fetch_session_cache import INITIAL_EPOCH, INVALID_SESSION_ID, next_epoch
from barnabas.replication.partition_fetch_state import PartitionFetchState, PartitionKey

__all__ = ["FetchSessionHandler", "Requested"]


class Requested(NamedTuple):
    """One partition of a request."""

    state: PartitionFetchState
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FetchSessionHandler:
    """One session with one leader.

    Attributes:
        session_id, epoch: of the next request.
        requested: each partition of the session, as it was last named.
    """

    __slots__ = ("epoch", "requested", "session_id")

    def __init__(self) -> None:
        self.session_id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self.requested: dict[PartitionKey, Requested] = {}

    def __repr__(self) -> str:
        return f"<FetchSessionHandler id={self.session_id} epoch={self.epoch} partitions={len(self.requested)}>"

    @property
    def is_full(self) -> bool:
        """Whether the next request names all its partitions."""
        return self.epoch == INITIAL_EPOCH

    def name(self, wanted: Mapping[PartitionKey, Requested], forgotten: Iterable[PartitionKey]) -> None:
        """Note the partitions that the next request names, and those that it removes from the session."""
        if self.is_full:
            self.requested = dict(wanted)
            return
        for key in forgotten:
            self.requested.pop(key, None)
        self.requested.update(wanted)

    def accept(self, response: FetchResponse) -> bool:
        """Note an answer; return whether it may be used."""
        code = response.error_code
        if code:
            if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = INVALID_SESSION_ID
            self.start_over()
            return False
        if not self._fits(response):
            self.start_over()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self.session_id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH
        else:
            self.session_id, self.epoch = response.session_id, next_epoch(self.epoch)
        return True

    def _fits(self, response: FetchResponse) -> bool:
        keys = {(topic.topic_id, data.partition_index) for topic in response.responses for data in topic.partitions}
        known = self.requested.keys()
        if self.is_full:
            return keys == known
        return keys <= known and response.session_id in (INVALID_SESSION_ID, self.session_id)

    def start_over(self) -> None:
        """Make the next request a full one, which closes the session."""
        self.epoch = INITIAL_EPOCH
        self.requested = {}

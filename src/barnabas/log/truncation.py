"""The frame around each truncation of a log.

    its copy is cut ──► checkpoints are lowered ──► the flusher knows ──► segments, epochs and producers are cut ──► syncs end

The copy of a log that moves to another directory is cut first, so that it never has records that the log has lost: whatever the log then
appends under the same offsets, the copy reads from it. A log lets go of a copy that cannot be cut, and is cut all the same; the move ends
(`directory_moves`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.log.errors import KafkaStorageError, in_words

if TYPE_CHECKING:
    from barnabas.log.log_flusher import LogFlusher

__all__ = ["truncation"]


@contextlib.contextmanager
def truncation(name: str, flusher: LogFlusher, prepare: Callable[[int], None], offset: int) -> Iterator[None]:
    """Prepare the truncation of a log, and end it; the caller cuts the segments in between.

    Args:
        name: the log's.
        prepare: cuts the copy and lowers the checkpoints; may raise OSError.
        offset: where the log will end.

    Raises:
        KafkaStorageError: the disk failed.
    """
    try:
        prepare(offset)
    except OSError as error:
        raise KafkaStorageError(f"cannot truncate {name}: {in_words(error)}") from error
    flusher.truncated(offset)
    try:
        yield
    except OSError as error:
        # Some segments may be gone, others not.
        raise flusher.failed(error, "a truncation") from error
    flusher.settle_elsewhere()

"""Logs that the metadata does not assign to this broker, after a restart: renamed and kept. The metadata may lag behind, or be lost.

Source: Kafka's `LogManager.handleStrayReplicas`, which deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.offset_checkpoints import Key
from barnabas.turns import REPLICA, pace

__all__ = ["set_aside"]

logger = logging.getLogger(__name__)

NAMED = 5
"""How many strays the log's one line about them names."""


async def set_aside(
    root: str, keys: Iterable[Key], is_stray: Callable[[Key], bool], move_away: Callable[[Key], str]
) -> list[Key]:
    """Rename the strays among the logs of a directory; return their keys.

    Args:
        move_away: renames a log's directory and returns its new path; may raise OSError.

    Raises:
        KafkaStorageError: the disk failed.
    """
    strays: list[Key] = []
    targets: list[str] = []
    try:
        for key in keys:
            await pace(REPLICA)
            if is_stray(key):
                strays.append(key)
                targets.append(move_away(key))
    except OSError as error:
        raise KafkaStorageError(f"cannot set a stray log aside: {in_words(error)}") from error
    if targets:
        named = ", ".join(target.rpartition("/")[2] for target in targets[:NAMED])
        more = f" and {len(targets) - NAMED} more" if len(targets) > NAMED else ""
        what = "%s: these logs belong to no partition of this broker; they are set aside and kept: %s%s"
        logger.warning(what, root, named, more)
    return strays

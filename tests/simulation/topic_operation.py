"""What a client asked of one topic's existence, and what it was answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """What was asked."""

    CREATE = auto()
    DELETE = auto()
    LOOK = auto()
    """Of a broker, which may be behind."""
    READ = auto()
    """Of a broker that knows all."""


class Outcome(Enum):
    """What came of it."""

    DONE = auto()
    REFUSED = auto()
    """The topic exists already, or does not exist."""
    UNKNOWN = auto()
    """No answer, or one that says nothing: it may be done, and at any time to come."""


@dataclass
class TopicOperation:
    """One request.

    Attributes:
        began: when the client asked, in the world's seconds.
        ended: when it had its answer; infinite without one.
        topic_id: of the topic that was created, is to be deleted, or was seen; None for no topic.
    """

    client: str
    kind: Kind
    began: float
    ended: float = math.inf
    outcome: Outcome = Outcome.UNKNOWN
    topic_id: bytes | None = None

"""Which applications work while nodes change: those that are asked for, as far as the release and the security allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.meanwhile.companion import Companion
from tests.cluster.meanwhile.connect import LINES, Connect
from tests.cluster.meanwhile.share_group import ACCEPTED, ShareGroup
from tests.cluster.meanwhile.streams import VERIFIED, Streams

NAMES = ("share", "connect", "streams")
"""In the order in which they begin: the driver of Kafka Streams writes for a minute and a half."""
COUNTED = (ACCEPTED, LINES, VERIFIED)
"""What the verdicts count of them, for the sum of all clusters."""
SHARE_SINCE = (4, 2)
"""The first release of Apache Kafka whose new clusters have share groups."""


def chosen(asked: Sequence[str], version: str, *, is_secured: bool) -> tuple[list[str], list[str]]:
    """Return the names of those that can work, and for the others a sentence why not.

    Args:
        asked: some of `NAMES`.
        version: of Apache Kafka.
    """
    release = tuple(int(part) for part in version.split(".")[:2])
    reasons = {}
    if release < SHARE_SINCE:
        reasons["share"] = f"no share group: a new cluster of Apache Kafka {version} has none"
    if is_secured:
        reasons["streams"] = "no Kafka Streams: the driver of its smoke test cannot log in"
    return [each for each in asked if each not in reasons], [reasons[each] for each in asked if each in reasons]


def made(names: Sequence[str], cluster: Cluster, topic: str, folder: Path) -> list[Companion]:
    """Return them; none has begun.

    Args:
        topic: of the producer, for those that only read.
        folder: for their files.
    """
    makers = {
        "share": lambda: ShareGroup(cluster.bootstrap_servers, topic, "exchange-share"),
        "streams": lambda: Streams(cluster, folder / "streams"),
        "connect": lambda: Connect(cluster, folder / "connect"),
    }
    return [makers[each]() for each in names]


@contextmanager
def at_work(companions: Sequence[Companion]) -> Iterator[None]:
    """Let them work while the block runs."""
    with ExitStack() as stack:
        for each in companions:
            stack.callback(each.close)
            each.begin()
        yield

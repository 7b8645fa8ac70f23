"""Elections that no request asks for: at an interval the controller looks for leaders that could be better.

- Where the first replica may lead but does not, it leads again (auto.leader.rebalance.enable).
- A partition without a leader, of a topic with unclean.leader.election.enable, gets a leader that may lack records. When a broker comes
  back, that happens immediately; the interval serves a setting that changes while the partition has no leader.
- A partition that has waited too long for the log of a replica gets the longest of the others (`unclean_recovery`).
- One look changes at most a thousand partitions. If there may be more, the next look follows directly; requests are answered in between.

Sources: Kafka's `QuorumController` (its periodic tasks), `ReplicationControlManager.maybeBalancePartitionLeaders` and
`maybeElectUncleanLeaders`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from barnabas.metadata.batches import Batches, in_batches
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.partition_index import NOT_PREFERRED, WITHOUT_LEADER
from barnabas.metadata.partition_leaders import Elections, Hosted, indexed
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.recovery_elections import elections_of_the_waiting

ELECTIONS_MAX = 1_000
RECOVERY_LOOK_MS = 1_000
"""How often the controller looks for partitions that have waited long enough for the logs of their replicas."""

Changes = Iterator[MetadataRecord | None]


class PeriodicElections:
    """Soft state of the active controller: when to look again."""

    def __init__(self) -> None:
        self._balance_ms: int | None = None
        self._unclean_ms: int | None = None
        self._recovery_ms = 0

    def __repr__(self) -> str:
        return f"<PeriodicElections balance={self._balance_ms} unclean={self._unclean_ms}>"

    def due(self, view: ControllerView) -> Batches | None:
        """Return the changes that are due now, None if no look is due; call until it is None."""
        settings, now_ms = view.settings, view.now_ms
        if self._balance_ms is None or self._unclean_ms is None:
            self._balance_ms = now_ms + settings.leader_imbalance_check_interval_ms
            self._unclean_ms = now_ms + settings.unclean_leader_election_interval_ms
        if now_ms >= self._balance_ms:
            return in_batches(self._balance(view))
        if now_ms >= self._unclean_ms:
            return in_batches(self._elect_unclean(view))
        if now_ms >= self._recovery_ms and view.sessions.logs.waiting:
            # Before the look: a partition whose wait is over may still find no replica that can lead.
            self._recovery_ms = now_ms + RECOVERY_LOOK_MS
            return elections_of_the_waiting(view)
        return None

    def _balance(self, view: ControllerView) -> Changes:
        """Let the first replica lead, where it may."""
        settings = view.settings
        if settings.auto_leader_rebalance_enable:
            is_all = yield from _elect(Elections(view), indexed(view, NOT_PREFERRED), Election.PREFERRED)
            if not is_all:
                return
        self._balance_ms = view.now_ms + settings.leader_imbalance_check_interval_ms

    def _elect_unclean(self, view: ControllerView) -> Changes:
        """Give a leader to partitions whose topic accepts a loss of records."""
        is_all = yield from _elect(Elections(view), indexed(view, WITHOUT_LEADER), Election.UNCLEAN)
        if is_all:
            self._unclean_ms = view.now_ms + view.settings.unclean_leader_election_interval_ms


def _elect(
    elections: Elections, partitions: Iterable[Hosted], election: Election
) -> Generator[MetadataRecord | None, None, bool]:
    """Yield the changes of partitions, and return whether these are all."""
    found = 0
    for at in partitions:
        if found == ELECTIONS_MAX:
            return False
        record = None
        if election is Election.PREFERRED or elections.is_unclean(at.topic):
            record = elections.builder(at, election).build(at.topic.topic_id, at.partition_id)
        found += record is not None
        yield record
    return True

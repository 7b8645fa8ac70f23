"""Elections that no request asks for: at an interval the controller looks for leaders that could be better.

- Where the first replica may lead but does not, it leads again (auto.leader.rebalance.enable).
- A partition without a leader, of a topic with unclean.leader.election.enable, gets one that may lack records. A broker that comes back
  does the same at once; this is for a setting that changes while the partition has no leader.
- One look changes at most a thousand partitions; the next one follows at once if there may be more.

Sources: Kafka's `QuorumController` (its periodic tasks), `ReplicationControlManager.maybeBalancePartitionLeaders` and
`maybeElectUncleanLeaders`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.partition_leaders import Elections, Hosted, all_partitions, leaderless_partitions
from barnabas.metadata.record_codec import MetadataRecord

ELECTIONS_MAX = 1_000


class PeriodicElections:
    """Soft state of the active controller: when to look again."""

    def __init__(self) -> None:
        self._balance_ms: int | None = None
        self._unclean_ms: int | None = None

    def __repr__(self) -> str:
        return f"<PeriodicElections balance={self._balance_ms} unclean={self._unclean_ms}>"

    def due(self, view: ControllerView) -> list[MetadataRecord]:
        """Return the changes that are due now; call until the list is empty."""
        settings, now_ms = view.settings, view.now_ms
        if self._balance_ms is None or self._unclean_ms is None:
            self._balance_ms = now_ms + settings.leader_imbalance_check_interval_ms
            self._unclean_ms = now_ms + settings.unclean_leader_election_interval_ms
        if now_ms >= self._balance_ms:
            records = balance_leaders(view) if settings.auto_leader_rebalance_enable else []
            if len(records) < ELECTIONS_MAX:
                self._balance_ms = now_ms + settings.leader_imbalance_check_interval_ms
            if records:
                return records
        if now_ms >= self._unclean_ms:
            records = elect_unclean(view)
            if len(records) < ELECTIONS_MAX:
                self._unclean_ms = now_ms + settings.unclean_leader_election_interval_ms
            return records
        return []


def balance_leaders(view: ControllerView) -> list[MetadataRecord]:
    """Return the changes after which the first replica leads, where it may."""
    others = (at for at in all_partitions(view) if at.partition.leader != at.partition.replicas[0])
    return _elect(Elections(view), others, Election.PREFERRED)


def elect_unclean(view: ControllerView) -> list[MetadataRecord]:
    """Return the changes that give a leader to partitions whose topic accepts a loss of records."""
    elections = Elections(view)
    accepted = (at for at in leaderless_partitions(view) if elections.is_unclean(at.topic))
    return _elect(elections, accepted, Election.UNCLEAN)


def _elect(elections: Elections, partitions: Iterable[Hosted], election: Election) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    for at in partitions:
        record = elections.builder(at, election).build(at.topic.topic_id, at.partition_id)
        if record is not None:
            records.append(record)
        if len(records) >= ELECTIONS_MAX:
            break
    return records

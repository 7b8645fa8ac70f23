"""The decision that fences a broker or unfences it: BrokerHeartbeat, sessions that expire, and the orderly shutdown.

- A heartbeat has the broker's metadata offset and its wishes (unfence, fence, shut down); the response has the broker's state.
- A broker is unfenced once it has read its own registration in the metadata log. It is fenced when it asks for it, when it may shut
  down, or when its session has expired (`broker_sessions`).
- A heartbeat may name directories that have failed (`offline_directories`).
- A heartbeat may say what the broker's replicas of partitions without a leader have (`unclean_recovery`); such a partition may then get
  a leader.
- A broker that wants to shut down first leaves every ISR and hands its leaderships over. It may stop, and is fenced, once it leads
  nothing and the other active brokers have read this in the metadata log. Until then it cannot lead, nor be in an ISR.

Differences from Kafka
- A broker that leads nothing, but is in ISRs, also waits before it may stop. Otherwise leaders would wait for it until they have read
  that it has gone. In Kafka it may stop immediately.
- After a change of controller, the other brokers have to read everything that the new one found appended. In Kafka the broker may stop at
  once then too.

Sources: KIP-631, KIP-858, KIP-1066; Kafka's `BrokerHeartbeatManager`, `ReplicationControlManager.processBrokerHeartbeat`.
"""

from __future__ import annotations

from barnabas.metadata.batches import Batches
from barnabas.metadata.cluster_control import registered
from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.metadata_version import CORDONED_DIRECTORIES_SINCE
from barnabas.metadata.offline_directories import on_directories_offline
from barnabas.metadata.partition_leaders import is_active, is_in_any_isr, leads_any, on_broker_back, on_broker_gone
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.recovery_elections import elections_of
from barnabas.protocol import messages

__all__ = ["fence_stale", "heartbeat", "keep_session"]

FENCE, UNFENCE = 1, -1


def heartbeat(
    view: ControllerView, request: messages.BrokerHeartbeatRequest
) -> ControllerResult[messages.BrokerHeartbeatResponse]:
    """Answer one BrokerHeartbeat: unfence a broker that has caught up, fence a broker on its own request, let
    one shut down that leads nothing, and note which directories have failed or are cordoned.

    Raises:
        KafkaError: BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
    """
    broker = registered(view, request.broker_id, request.broker_epoch)
    is_new_of = view.sessions.logs.note(broker.id, broker.epoch, request.replica_logs)
    caught_up = request.current_metadata_offset >= broker.epoch
    batches: Batches | None = None
    fenced, should_shut_down = broker.fenced, False
    offline = on_directories_offline(view, broker, request.offline_log_dirs)
    if request.want_shut_down:
        batches, should_shut_down = _shut_down(view, broker, want_fence=request.want_fence)
        fenced = broker.fenced or should_shut_down
    elif offline is not None:
        batches = offline
    elif broker.fenced and not request.want_fence and caught_up:
        batches = _settle(view, broker.id, _change(broker, fenced=UNFENCE))
        fenced = False
    elif not broker.fenced and request.want_fence:
        batches = fence_broker(view, broker)
        fenced = True
    elif not broker.fenced and broker.id not in view.sessions.settled:
        # Its unfencing stopped half-way, possibly in another controller.
        batches = _settle(view, broker.id)
    elif is_new_of:
        batches = elections_of(view, is_new_of)
    cordoned = _cordoned(view, broker, request.cordoned_log_dirs)
    if cordoned is not None:
        batches = _followed_by(cordoned, batches)
    view.sessions.touch(broker.id, view.now_ms, request.current_metadata_offset)
    response = messages.BrokerHeartbeatResponse(
        is_caught_up=caught_up, is_fenced=fenced, should_shut_down=should_shut_down
    )
    return ControllerResult(response, batches=batches)


def _cordoned(
    view: ControllerView, broker: BrokerRegistration, directories: list[bytes] | None
) -> MetadataRecord | None:
    """Return the record of a change of the broker's cordoned directories (KIP-1066); None without a change.

    Args:
        directories: from a heartbeat; None if it does not speak of them.
    """
    if directories is None or (view.image.features.metadata_version or 0) < CORDONED_DIRECTORIES_SINCE:
        return None
    if set(directories) == set(broker.cordoned_directories):
        return None
    return messages.BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=sorted(directories)
    )


def _followed_by(record: MetadataRecord, batches: Batches | None) -> Batches:
    records = [] if batches is None else (yield from batches)
    return [*records, record]


def _settle(view: ControllerView, broker_id: int, *first: MetadataRecord) -> Batches:
    """Let a broker lead the partitions that wait for it; `first` comes before these changes."""
    records = yield from on_broker_back(view, broker_id, *first)
    view.sessions.settled.add(broker_id)
    return records


def keep_session(view: ControllerView, request: messages.BrokerHeartbeatRequest) -> None:
    """Count a heartbeat that has to wait for a larger change: the broker is not to lose its session by that wait."""
    broker = view.image.cluster.brokers.get(request.broker_id)
    if broker is not None and broker.epoch == request.broker_epoch:
        view.sessions.last_contact_ms[broker.id] = view.now_ms


def _change(broker: BrokerRegistration, *, fenced: int = 0, shutting_down: int = 0) -> MetadataRecord:
    return messages.BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=fenced, in_controlled_shutdown=shutting_down
    )


def _shut_down(view: ControllerView, broker: BrokerRegistration, *, want_fence: bool) -> tuple[Batches | None, bool]:
    """Return the changes of one step of an orderly shutdown, and whether the broker may stop after them."""
    if broker.fenced:
        return None, True
    is_leaving, sessions = broker.in_controlled_shutdown, view.sessions
    if not is_leaving and (want_fence or not is_in_any_isr(view, broker.id)):
        return fence_broker(view, broker), True
    if not is_leaving or leads_any(view, broker.id):
        return _hand_over(view, broker), False
    handed_over = sessions.shut_down_offset.setdefault(broker.id, view.quorum.end_offset - 1)
    others = [each.id for each in view.image.cluster.brokers.values() if is_active(each)]
    if any(sessions.applied.get(other, -1) < handed_over for other in others):
        return None, False
    return fence_broker(view, broker), True


def _hand_over(view: ControllerView, broker: BrokerRegistration) -> Batches:
    first = [] if broker.in_controlled_shutdown else [_change(broker, shutting_down=1)]
    records = yield from on_broker_gone(view, broker.id, *first)
    view.sessions.shut_down_offset[broker.id] = view.quorum.end_offset + len(records) - 1
    return records


def fence_broker(view: ControllerView, broker: BrokerRegistration) -> Batches:
    """Return the changes that fence a broker. Its own record comes last: if this controller fails before, the next one fences it again."""
    view.sessions.settled.discard(broker.id)
    records = yield from on_broker_gone(view, broker.id)
    return [*records, _change(broker, fenced=FENCE)]


def fence_stale(view: ControllerView) -> Batches | None:
    """Return the changes that fence one broker whose session has expired; call until it is None."""
    for broker_id in view.sessions.stale(view.image.cluster, view.now_ms):
        view.sessions.forget(broker_id)
        return fence_broker(view, view.image.cluster.brokers[broker_id])
    return None

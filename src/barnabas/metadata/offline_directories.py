"""Directories that fail while their broker goes on (KIP-858): the broker names them in its heartbeats.

- The broker's replicas in such a directory leave each ISR; where one led, another replica leads. Its replicas in other directories stay.
- The registration then has the directories that are left, so that no election chooses a replica in a failed one. That record comes
  last: if this controller fails before, the next one finds the directory in the next heartbeat again.
- A broker whose directories have all failed keeps its registration as it is: it is about to stop, and a record cannot say "none".
- A directory that comes back is offered again at the next registration.
- Before metadata.version 3.7-IV2 directories have no names; offline ones are ignored.

Difference from Kafka: a heartbeat that names a directory does nothing else but shut down; its broker is unfenced or fenced by the next
one. Both changes together could elect a replica in the directory that failed.

Source: Kafka's `ReplicationControlManager.handleDirectoriesOffline`.
"""

from __future__ import annotations

import logging

from barnabas.metadata.batches import Batches, in_batches
from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.metadata_version import DIRECTORY_ASSIGNMENT_SINCE
from barnabas.metadata.partition_leaders import Elections, indexed
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import messages
from barnabas.protocol.primitives import uuid_to_str

__all__ = ["on_directories_offline"]

logger = logging.getLogger(__name__)


def on_directories_offline(view: ControllerView, broker: BrokerRegistration, named: list[bytes]) -> Batches | None:
    """Return the changes when directories of a broker have failed; None if the registration has none of those that are named."""
    lost = {each for each in broker.directories if each in named}
    if not lost or (view.image.features.metadata_version or 0) < DIRECTORY_ASSIGNMENT_SINCE:
        return None
    return _changes(view, broker, lost)


def _changes(view: ControllerView, broker: BrokerRegistration, lost: set[bytes]) -> Batches:
    in_isr = (at for at in indexed(view, broker.id) if broker.id in at.partition.isr)
    there = (at for at in in_isr if _directory(at.partition, broker.id) in lost)
    records = yield from in_batches(Elections(view, gone=broker.id).changes(there))
    left = sorted(set(broker.directories) - lost)
    if not left:
        return records
    names = ", ".join(uuid_to_str(each) for each in sorted(lost))
    logger.warning("Broker %d has lost the directories %s; it goes on with %d", broker.id, names, len(left))
    change = messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left)
    return [*records, change]


def _directory(partition: PartitionRegistration, broker_id: int) -> bytes | None:
    """Return the directory of a broker's replica; None before partitions have named any."""
    position = partition.replicas.index(broker_id)
    return partition.directories[position] if position < len(partition.directories) else None

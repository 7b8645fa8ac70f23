"""Format and describe a data directory, for `barnabas storage` and the first start.

    meta.properties            cluster.id, node.id, directory.id: the owner of the directory
    bootstrap.checkpoint       the feature levels and the users that the first controller writes into a fresh metadata log
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint
                               the first voters of a quorum that can change: this node alone (`--standalone`), or those of
                               `--initial-controllers`. A node of a static quorum has none, nor has one that joins a quorum. Of
                               several directories of a node, only that of the metadata log has it.

Crash argument: meta.properties is written last, under another name, and renamed. A directory without it counts as unformatted;
formatting it again replaces the files of an interrupted attempt.

Sources: Kafka's `StorageTool`, `Formatter`; KIP-631, KIP-778, KIP-853, KIP-858.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.log import meta_properties
from barnabas.log.directory_lock import LOCK_FILE
from barnabas.log.disk import Disk, DiskLocked, parent_dir
from barnabas.log.meta_properties import META_PROPERTIES, InvalidMetaProperties, MetaProperties
from barnabas.metadata.bootstrap import BOOTSTRAP_CHECKPOINT, bootstrap_records, default_levels
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.snapshots import build_bootstrap, build_voters_checkpoint
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID, Uuid, uuid_from_str, uuid_to_str
from barnabas.quorum.metadata_log import DIRECTORY, checkpoint_name, controller_endpoints
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voters import Voter, VoterSet

# The first sextet that base64url prints as a dash, which tools would read as the start of an option.
_DASH = 62


def random_uuid(random: random_module.Random) -> str:
    """Return a random id in Kafka's text form: 22 characters, not a reserved id, no leading dash."""
    while True:
        uuid = Uuid(random.randbytes(16))
        if uuid not in (ZERO_UUID, ONE_UUID) and uuid[0] >> 2 != _DASH:
            return uuid_to_str(uuid)


def format_directory(
    disk: Disk,
    root: str,
    cluster_id: str | None,
    node_id: int,
    config: BrokerConfig,
    random: random_module.Random,
    *,
    now_ms: int = 0,
    metadata_version: int = LATEST_PRODUCTION,
    levels: Mapping[str, int] | None = None,
    standalone: bool = True,
    initial_voters: VoterSet | None = None,
    users: Sequence[MetadataRecord] = (),
    has_metadata: bool = True,
) -> MetaProperties:
    """Format an empty directory for this node.

    Args:
        cluster_id: None for a random one.
        levels: levels of features that are not the default ones of this metadata.version.
        standalone: this node is the only voter of a new quorum; if there are no `initial_voters`.
        initial_voters: the first voters of a quorum; this node gets the directory id that they name for it.
        users: records of the first users of SCRAM.
        has_metadata: whether the metadata log goes into this directory; the others of a node have an id of their own and no voters.

    Raises:
        CannotStart: the directory is formatted already.
        OSError: the disk failed.
    """
    if disk.exists(f"{root}/{META_PROPERTIES}"):
        raise CannotStart(f"log directory {root} is already formatted (--ignore-formatted skips it)")
    sync = config.barnabas_metadata_flush
    voters = initial_voters if has_metadata else None
    own = None if voters is None else voters.voter(node_id)
    cluster_id = cluster_id or random_uuid(random)
    directory_id = random_uuid(random) if own is None else uuid_to_str(own.directory_id)
    meta = MetaProperties(cluster_id, node_id, directory_id)
    if voters is None and standalone and has_metadata:
        voters = VoterSet.of([Voter(node_id, uuid_from_str(directory_id), controller_endpoints(config))])
    disk.mkdir(root)
    records = bootstrap_records(metadata_version, {**default_levels(metadata_version), **(levels or {})})
    bootstrap = build_bootstrap([*records, *users], metadata_version, now_ms)
    disk.write_file_atomic(f"{root}/{BOOTSTRAP_CHECKPOINT}", bootstrap, sync=sync)
    checkpoint = f"{root}/{DIRECTORY}/{checkpoint_name(SnapshotId(0, 0))}"
    if voters is not None:
        disk.mkdir(f"{root}/{DIRECTORY}")
        disk.write_file_atomic(checkpoint, build_voters_checkpoint(voters, now_ms), sync=sync)
    elif disk.exists(checkpoint):
        # An interrupted attempt had other voters.
        disk.remove(checkpoint)
    if sync:
        # The directory's own name must be as durable as its files.
        disk.sync_dir(root)
        disk.sync_dir(parent_dir(root))
    disk.write_file_atomic(f"{root}/{META_PROPERTIES}", meta.encode(), sync=sync)
    return meta


class StorageInfo(NamedTuple):
    """The content of data directories.

    Attributes:
        formatted: the owner of each directory that has one.
        problems: a line for each, with its remedy.
    """

    formatted: dict[str, MetaProperties]
    problems: list[str]


def info(disk: Disk, directories: Sequence[str], check_is_free: Callable[[str], None]) -> StorageInfo:
    """Describe data directories.

    Args:
        check_is_free: raises CannotStart for a directory that may not be formatted.
    """
    found = StorageInfo({}, [])
    for directory in sorted(directories):
        options = f"--data-dir {directory}" if len(directories) == 1 else "--ignore-formatted -c FILE"
        remedy = f"`barnabas storage format {options}` formats it"
        if not disk.exists(directory):
            found.problems.append(f"{directory} does not exist (check the path)")
            continue
        if not disk.is_dir(directory):
            found.problems.append(f"{directory} is a file, not a directory (pass another --data-dir)")
            continue
        try:
            meta = meta_properties.read(disk, directory)
        except InvalidMetaProperties as error:
            found.problems.append(f"cannot read {directory}/{META_PROPERTIES}: {error}")
        else:
            if meta is not None:
                found.formatted[directory] = meta
                continue
            try:
                check_is_free(directory)
            except CannotStart as error:
                found.problems.append(str(error))
            else:
                found.problems.append(f"{directory} is not formatted ({remedy})")
    if len({(meta.cluster_id, meta.node_id) for meta in found.formatted.values()}) > 1:
        found.problems.append("the directories belong to different clusters or nodes")
    return found


def is_in_use(disk: Disk, directory: str) -> bool | None:
    """Return whether a broker runs on a data directory; None if its lock cannot be tried, as on a read-only file system."""
    lock = f"{directory}/{LOCK_FILE}"
    if not disk.exists(lock):
        return False
    try:
        disk.lock(lock).release()
    except DiskLocked:
        return True
    except OSError:
        return None
    return False

"""The file and the directory of the node that `barnabas adopt next` changes: read and checked, never formatted or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.config.config import BrokerConfig
from barnabas.config.sources import ConfigSources
from barnabas.log import meta_properties
from barnabas.log.disk import Disk, OsDisk
from barnabas.log.meta_properties import META_PROPERTIES, InvalidMetaProperties
from barnabas.metadata.config_schema import ConfigError
from barnabas.words.printable import printable

__all__ = ["OwnFiles", "read_own_files"]


class OwnFiles(NamedTuple):
    """A node on this machine.

    Attributes:
        path: of its `server.properties`.
        root: its first directory, which has the lock.
        controllers: the addresses of its controller's listeners, host and port.
    """

    path: str
    root: str
    node_id: int
    cluster_id: str
    is_alone: bool
    controllers: tuple[tuple[str, int], ...] = ()

    def check_cluster(self, cluster_id: str | None) -> None:
        """Check that the directory belongs to the cluster that answers.

        Raises:
            Failure: it belongs to another one.
        """
        if cluster_id is not None and cluster_id != self.cluster_id:
            raise Failure(
                f"{printable(self.root)} is a directory of another cluster: {printable(self.cluster_id)}, not {printable(cluster_id)}",
                "give the file of a node of this cluster, or another -b",
            )


def read_own_files(path: str, environ: Mapping[str, str], disk: Disk | None = None) -> OwnFiles:
    """Return the node of a file.

    Raises:
        Failure: `barnabas start` would refuse the file, or a directory is not formatted, or is another node's.
    """
    try:
        config = ConfigSources(path, environ).config()
    except ConfigError as mistake:
        raise Failure(f"barnabas does not start with {printable(path)}: {mistake}", "change the file first") from None
    found = {_cluster_id(config, root, disk or OsDisk()) for root in config.log_dirs}
    if len(found) > 1:
        raise Failure(f"the directories of {printable(path)} belong to several clusters: {printable(', '.join(sorted(found)))}")
    controllers = tuple((each.host, each.port) for each in config.listeners if each.name in config.controller_listener_names)
    return OwnFiles(path, config.log_dirs[0], config.node_id, found.pop(), config.is_alone, controllers)


def _cluster_id(config: BrokerConfig, root: str, disk: Disk) -> str:
    where = printable(root)
    if not disk.is_dir(root):
        raise Failure(f"{where} is no directory on this machine", f"type the command on the machine of node {config.node_id}")
    try:
        meta = meta_properties.read(disk, root)
    except InvalidMetaProperties as error:
        raise Failure(f"{where}: {error}") from None
    except OSError as error:
        raise Failure(f"{where} cannot be read: {(error.strerror or str(error)).lower()}", "type the command as the user of the node") from None
    if meta is None:
        raise Failure(f"{where} has no {META_PROPERTIES}: it is no node's directory", "this command formats nothing; correct log.dirs, or restore that file")
    if meta.node_id != config.node_id:
        raise Failure(f"{where} is the directory of node {meta.node_id}, and the file has node.id={config.node_id}", f"set node.id={meta.node_id}, or correct log.dirs")
    return meta.cluster_id

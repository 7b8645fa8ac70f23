"""The file and the directories of the node that `barnabas adopt next` changes: read and checked, never formatted or changed."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.adopt.directory_lock import holder_of
from barnabas.adopt.given_directory import GivenDirectory
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.observation import OwnNode
from barnabas.cli.failure import Failure
from barnabas.log.meta_properties import META_PROPERTIES
from barnabas.words.printable import printable

__all__ = ["OwnFiles", "own_files"]


class OwnFiles(NamedTuple):
    """A node on this machine.

    Attributes:
        root: its first directory, which has the lock.
    """

    file: GivenFile
    node_id: int
    root: str
    cluster_id: str

    def holder(self) -> int | None:
        """Return the process id of the node that runs in the directory; None if none does.

        Raises:
            Failure: this system, or the directory's rights, do not let one see it.
        """
        try:
            return holder_of(self.root)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Failure(
                f"who runs in {printable(self.root)} cannot be seen: {why}",
                "type the command as the user of the node, on Linux",
            ) from None

    def now(self) -> OwnNode:
        """Return the node as its directory shows it now."""
        return OwnNode(self.node_id, is_held=self.holder() is not None, is_alone=self.file.is_alone)


def own_files(file: GivenFile) -> OwnFiles:
    """Return the node of a file.

    Raises:
        Failure: the file does not parse, or a directory is not here, not formatted, or another node's.
    """
    where = printable(file.path)
    if file.node_id is None:
        raise Failure(f"{where}: {file.mistakes[0]}", "correct the file")
    clusters = {_cluster_id(each, file.node_id) for each in file.directories}
    if len(clusters) > 1:
        raise Failure(
            f"the directories of {where} belong to several clusters: {printable(', '.join(sorted(clusters)))}"
        )
    return OwnFiles(file, file.node_id, file.directories[0].path, clusters.pop())


def _cluster_id(directory: GivenDirectory, node_id: int) -> str:
    where, meta = printable(directory.path), directory.meta
    if not directory.is_here:
        raise Failure(f"{where} is no directory on this machine", f"type the command on the machine of node {node_id}")
    if directory.unreadable:
        why = printable(directory.unreadable).lower()
        raise Failure(f"{where} cannot be read: {why}", "type the command as the user of the node")
    if meta is None:
        raise Failure(
            f"{where} has no {META_PROPERTIES}: it is no node's directory",
            "this command formats nothing; correct log.dirs, or restore that file",
        )
    if meta.node_id != node_id:
        raise Failure(
            f"{where} is the directory of node {meta.node_id}, and the file has node.id={node_id}",
            f"set node.id={meta.node_id}, or correct log.dirs",
        )
    return meta.cluster_id

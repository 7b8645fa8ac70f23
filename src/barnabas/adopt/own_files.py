"""The file and the directories of the node that `barnabas adopt next` changes: read and checked, never formatted or changed."""

from __future__ import annotations

import errno
import socket
from typing import Any, NamedTuple

from barnabas.adopt.directory_lock import holder_of
from barnabas.adopt.given_directory import GivenDirectory
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.observation import OwnNode
from barnabas.cli.failure import Failure
from barnabas.log.meta_properties import META_PROPERTIES
from barnabas.words.printable import printable

__all__ = ["OwnFiles", "is_taken", "own_files"]


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
        is_held = self.holder() is not None
        listens = not is_held and any(is_taken(*each) for each in self.file.addresses)
        return OwnNode(self.node_id, is_held=is_held, is_alone=self.file.is_alone, listens=listens)


def is_taken(host: str, port: int) -> bool:
    """Return whether a process listens at this address of this machine. Port 0 is free."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return any(_is_taken(family, address) for family, _, _, _, address in found)


def _is_taken(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        # As a start does it: connections of the last run that have ended do not count.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            tried.bind(address)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


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

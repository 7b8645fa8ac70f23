"""The files of nodes: would they start, and do their directories belong to this cluster?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from barnabas.adopt.cluster_state import ClusterState, Unseen
from barnabas.adopt.finding import Finding, blocks, differs, works
from barnabas.adopt.given_directory import GivenDirectory
from barnabas.adopt.given_file import GivenFile, OwnSetting
from barnabas.cli.wording import counted, listed
from barnabas.words.byte_sizes import format_bytes
from barnabas.words.printable import printable

__all__ = ["findings_of_files", "unseen_of_files"]

_FREE_PART = 20
"""A directory with less than this part of its file system free is named."""
_TIERED = "remote.log.storage.system.enable"


def findings_of_files(files: Sequence[GivenFile], state: ClusterState) -> Iterator[Finding]:
    """Yield what the files mean for a start of barnabas with them, in this cluster."""
    for file in files:
        where = printable(file.path)
        for mistake in file.mistakes:
            yield blocks(where, f"barnabas does not start with it: {mistake}", "change the file, then check again")
        yield from _of_settings(file)
        if file.node_id is not None and not file.mistakes:
            yield works(where, f"barnabas starts with it, as node {file.node_id} ({','.join(file.roles)})")
        if file.node_id is not None:
            yield from _of_node(file, state)
        for directory in file.directories:
            yield from _of_directory(file, directory, state)
    yield from _twice(files)


def unseen_of_files(files: Sequence[GivenFile], state: ClusterState) -> list[Unseen]:
    """Return which nodes have no file here, and which directories are on other machines."""
    given = {file.node_id for file in files}
    nodes = sorted({*state.brokers, *state.fenced, *state.voters})
    found = [
        Unseen(f"server.properties of node {node}", "not given (--config FILE)") for node in nodes if node not in given
    ]
    for file in files:
        away = [each.path for each in file.directories if not each.is_here]
        if away:
            what = f"{printable(', '.join(away))} and the key stores of {printable(file.path)}"
            found.append(Unseen(what, "not on this machine: check there, too"))
    return found


def _place(file: GivenFile, setting: OwnSetting) -> str:
    path = printable(file.path)
    return path if setting.line is None else f"{path}, line {setting.line}"


def _of_settings(file: GivenFile) -> Iterator[Finding]:
    for setting in file.unknown:
        remedy = "nothing, if a plugin of Apache Kafka reads it; else correct its name"
        yield differs(_place(file, setting), f"{printable(setting.name)} is ignored: {setting.meaning}", remedy)
    for setting in file.without_effect:
        if setting.name == _TIERED:
            what = f"{setting.name} has no effect: barnabas has no tiered storage"
            yield differs(_place(file, setting), what, "nothing, if no topic has remote.storage.enable=true")
        else:
            yield differs(_place(file, setting), f"{setting.name} has no effect", "leave it for the way back")
    for variable in file.variables:
        what = f"the variable {printable(variable)} of this shell is a setting, too"
        yield differs(printable(file.path), what, "unset it, unless `barnabas start` shall have it")


def _of_node(file: GivenFile, state: ClusterState) -> Iterator[Finding]:
    known = {*state.brokers, *state.fenced, *state.voters}
    if file.node_id not in known:
        what = f"node {file.node_id} is not in this cluster ({listed(sorted(known))})"
        yield differs(printable(file.path), what, "correct node.id, unless a new node is to join")
    assert file.node_id is not None
    running = {each.path for each in state.log_dirs.get(file.node_id, ())}
    others = [each.path for each in file.directories if each.path not in running]
    if running and others:
        what = f"broker {file.node_id} keeps its data in {printable(listed(sorted(running)))}, not in {printable(listed(others))}"
        yield blocks(printable(file.path), what, "give the file with which the running broker was started")


def _of_directory(file: GivenFile, directory: GivenDirectory, state: ClusterState) -> Iterator[Finding]:
    where = printable(directory.path)
    if not directory.is_here:
        return
    meta = directory.meta
    if directory.unreadable:
        what = f"it cannot be read: {printable(directory.unreadable)}"
        yield blocks(where, what, "run the check as the user of the node, and mend the directory")
    elif meta is None:
        yield differs(where, "it is not formatted", "nothing, if a new node is to join")
    elif state.cluster_id is not None and meta.cluster_id != state.cluster_id:
        what = f"it is a directory of another cluster: {printable(meta.cluster_id)}, not {state.cluster_id}"
        yield blocks(where, what, "give the file of a node of this cluster, or another -b")
    elif meta.node_id != file.node_id:
        what = f"it is the directory of node {meta.node_id}, and the file has node.id={file.node_id}"
        yield blocks(where, what, f"set node.id={meta.node_id}, or correct log.dirs")
    else:
        yield works(where, f"it is the directory of node {meta.node_id} of this cluster")
    if directory.old_segments:
        count = counted(len(directory.old_segments), "segment")
        what = f"{count} with records in message format v0 or v1, which barnabas does not read: {listed(directory.old_segments)}"
        yield blocks(where, what, "wait until retention has deleted them, or copy the topic with a client")
    if directory.total_bytes and directory.free_bytes * _FREE_PART < directory.total_bytes:
        what = f"{format_bytes(directory.free_bytes)} of {format_bytes(directory.total_bytes)} are free"
        yield differs(where, what, "make room before the node changes: recovery and catching up write")


def _twice(files: Sequence[GivenFile]) -> Iterator[Finding]:
    """Yield node ids and directories that two files share."""
    nodes = Counter(file.node_id for file in files if file.node_id is not None)
    paths = Counter(each.path for file in files for each in file.directories if each.is_here)
    for node, count in nodes.items():
        if count > 1:
            sharing = [printable(file.path) for file in files if file.node_id == node]
            yield blocks(listed(sharing), f"{count} files have node.id={node}", "give each node a file of its own")
    for path, count in paths.items():
        if count > 1:
            yield blocks(printable(path), f"{count} files name this directory", "give each node a directory of its own")

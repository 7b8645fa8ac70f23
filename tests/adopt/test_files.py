"""Files and directories beside the cluster that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.adopt.files import findings_of_files, unseen_of_files
from barnabas.adopt.finding import Verdict
from barnabas.adopt.given_directory import GivenDirectory
from barnabas.adopt.given_file import GivenFile, OwnSetting
from barnabas.client.admin import LogDir
from barnabas.log.meta_properties import MetaProperties
from tests.adopt.states import CLUSTER_ID, HEALTHY, of_verdict

DATA = GivenDirectory("/data", meta=MetaProperties(CLUSTER_ID, 2), free_bytes=50, total_bytes=100)
FILE = GivenFile("node-2.properties", 2, ("broker",), directories=(DATA,), settings=9)
STATE = replace(HEALTHY, log_dirs={2: [LogDir("/data", None, [], 100, 50)]})


def blocked(file: GivenFile) -> list[str]:
    return of_verdict(list(findings_of_files([file], STATE)), Verdict.BLOCKS)


def test_a_node_of_this_cluster() -> None:
    found = list(findings_of_files([FILE], STATE))
    assert {each.verdict for each in found} == {Verdict.WORKS}
    assert [each.where for each in found] == [("node-2.properties",), ("/data",)]


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        (replace(DATA, meta=MetaProperties("QwvTT5vyS0-Cb4-Yq9sNmQ", 2)), "it is a directory of another cluster"),
        (replace(DATA, meta=MetaProperties(CLUSTER_ID, 3)), "it is the directory of node 3"),
        (replace(DATA, meta=None, unreadable="permission denied"), "it cannot be read"),
        (replace(DATA, old_segments=("/data/orders-0/0.log",)), "1 segment with records in message format v0 or v1"),
        (replace(DATA, path="/other"), "broker 2 keeps its data in /data, not in /other"),
    ],
)
def test_directories_that_block(directory: GivenDirectory, words: str) -> None:
    (what,) = blocked(replace(FILE, directories=(directory,)))
    assert what.startswith(words)


def test_mistakes_block() -> None:
    assert blocked(replace(FILE, mistakes=("node.id is not set",))) == [
        "barnabas does not start with it: node.id is not set"
    ]


def test_settings_name_their_line() -> None:
    file = replace(
        FILE,
        unknown=(OwnSetting("foo", 3, "there is no setting foo"),),
        without_effect=(OwnSetting("num.io.threads", 4, "Threads."),),
        variables=("KAFKA_NODE_ID",),
    )
    found = [each for each in findings_of_files([file], STATE) if each.verdict == Verdict.DIFFERS]
    assert [each.where for each in found] == [
        ("node-2.properties, line 3",),
        ("node-2.properties, line 4",),
        ("node-2.properties",),
    ]


def test_a_node_that_is_new_and_a_full_disk() -> None:
    file = replace(FILE, node_id=9, directories=(replace(DATA, meta=None, free_bytes=1),))
    assert [each.partition(":")[0] for each in of_verdict(list(findings_of_files([file], STATE)), Verdict.DIFFERS)] == [
        "node 9 is not in this cluster (1, 2, 3)",
        "it is not formatted",
        "1 B of 100 B are free",
    ]


def test_two_files_of_one_node() -> None:
    found = of_verdict(list(findings_of_files([FILE, replace(FILE, path="copy")], STATE)), Verdict.BLOCKS)
    assert found == ["2 files have node.id=2", "2 files name this directory"]


def test_what_was_not_seen() -> None:
    away = replace(FILE, directories=(GivenDirectory("/away", is_here=False),))
    assert [each.what for each in unseen_of_files([away], STATE)] == [
        "server.properties of node 1",
        "server.properties of node 3",
        "/away and the key stores of node-2.properties",
    ]

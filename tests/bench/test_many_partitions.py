"""The longest turns of a node that knows many partitions: every phase comes to its end, and is reported."""

from __future__ import annotations

import re

import pytest
from bench.many_partitions import Phases


@pytest.mark.long
def test_a_few_partitions_go_through_all_phases(tmp_path, capsys):
    phases = Phases(tmp_path, 4, 3, 4)
    phases.run([])
    phases.loop.run_until_complete(phases.serving.node.stop())
    phases.loop.close()
    names = re.findall(r"^ *[\d.]+ ms +\d+ turns  (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert names[:2] == ["(create the partitions)", "(create the node's own partitions)"]
    assert names[-3:] == ["the node stops", "the node starts", "a minute after the start"]
    assert len(names) > 50

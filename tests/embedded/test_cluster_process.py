"""The process of a node: how it begins, and what is said when it does not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.embedded.cluster_process import ClusterProcess
from barnabas.embedded.fault_plan import NO_FAULTS
from barnabas.process.local_cluster import LocalNode

FIRST = {"settings": {}, "peers": [], "plan": NO_FAULTS.to_json(1), "temporary": False}


def process_in(folder: Path, **settings: object) -> ClusterProcess:
    node = LocalNode(1, folder, True)
    own = {"node.id": 1, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": node.data, **settings}
    node.properties.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
    return ClusterProcess(node)


def test_a_node_that_is_down(tmp_path: Path) -> None:
    process = process_in(tmp_path)
    assert repr(process) == "<ClusterProcess 1 down on ->"
    assert not process.is_up
    process.kill()
    process.wait_for_end()
    with pytest.raises(ConnectionError, match="node 1 is down"):
        process.ask("look", None, 1)


@pytest.mark.slow
def test_a_node_with_a_wrong_setting_does_not_start(tmp_path: Path) -> None:
    process = process_in(tmp_path, **{"num.partitions": "many"})
    process.launch(FIRST)
    with pytest.raises(CannotStart) as caught:
        process.await_ready(time.monotonic() + 60)
    text = str(caught.value)
    assert text.startswith("node 1 does not start: num.partitions")
    assert "; its log ends with\n    error: num.partitions" in text
    assert not process.is_up


@pytest.mark.slow
def test_a_life(tmp_path: Path) -> None:
    process = process_in(tmp_path)
    process.launch(FIRST)
    process.await_ready(time.monotonic() + 60)
    assert repr(process) == f"<ClusterProcess 1 up on {process.address}>"
    assert process.ask("look", None, 60)["brokers"] == [1]
    process.pause()
    assert process.is_up
    assert not process.answers
    process.resume()
    assert process.ask("look", None, 60)["leads"]
    process.end()
    process.wait_for_end()
    assert not process.is_up
    assert "Stopping: the cluster ends" in "\n".join(process.last_lines())

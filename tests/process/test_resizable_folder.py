"""The files of a cluster that grows and shrinks while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart
from barnabas.process.local_cluster import LocalCluster, open_cluster, size_of
from barnabas.process.resizable_folder import ResizableFolder


def formatted(cluster: LocalCluster, cluster_id: str) -> None:
    for node in cluster.nodes:
        node.data.mkdir(exist_ok=True)
        (node.data / "meta.properties").write_text(f"cluster.id={cluster_id}\nnode.id={node.node_id}\n")


def opened(root: Path, nodes: int, **options: str) -> ResizableFolder:
    cluster = open_cluster(root, nodes, 0, formatted)
    return ResizableFolder(root, cluster, format_all=formatted, **options)  # type: ignore[arg-type]


def settings(root: Path, node: int) -> dict[str, str]:
    return dict(read_properties(str(root / f"node-{node}" / "server.properties")))


def test_a_node_more_and_a_node_less(tmp_path: Path) -> None:
    folder = opened(tmp_path, 1)
    assert folder.grow() == ""
    assert (len(folder.cluster.nodes), size_of(tmp_path)) == (2, "2")
    new = settings(tmp_path, 2)
    assert (new["process.roles"], new["default.replication.factor"]) == ("broker", "2")
    assert new["controller.quorum.voters"] == settings(tmp_path, 1)["controller.quorum.voters"]
    assert (
        (tmp_path / "node-2" / "data" / "meta.properties").read_text().startswith(f"cluster.id={folder.cluster_id}\n")
    )
    assert settings(tmp_path, 1)["default.replication.factor"] == "2"
    folder.shrink()
    assert (len(folder.cluster.nodes), size_of(tmp_path)) == (1, "1")
    assert settings(tmp_path, 1)["default.replication.factor"] == "1"
    assert (tmp_path / "node-2" / "data" / "meta.properties").exists()


def test_a_node_has_ports_that_no_metrics_port_takes(tmp_path: Path) -> None:
    folder = opened(tmp_path, 1)
    (first,) = {max(node.ports) for node in folder.cluster.nodes}
    folder = ResizableFolder(tmp_path, folder.cluster, metrics_listen=f"127.0.0.1:{first + 1}", format_all=formatted)
    assert folder.grow() == f"127.0.0.1:{first + 2}"
    assert not {first + 1, first + 2} & set(folder.cluster.nodes[1].ports)


def test_metrics_ports_that_reach_a_port_of_the_cluster_make_nothing(tmp_path: Path) -> None:
    folder = opened(tmp_path, 1)
    first = min(folder.cluster.nodes[0].ports)
    folder = ResizableFolder(tmp_path, folder.cluster, metrics_listen=f"127.0.0.1:{first - 1}", format_all=formatted)
    with pytest.raises(CannotStart, match=f"a node serves port {first} already"):
        folder.grow()
    assert (len(folder.cluster.nodes), size_of(tmp_path)) == (1, "1")
    assert not (tmp_path / "node-2").exists()


def test_a_node_that_cannot_be_formatted_is_no_part_of_the_cluster(tmp_path: Path) -> None:
    def full(cluster: LocalCluster, cluster_id: str) -> None:
        raise CannotStart("node 2 cannot be formatted: no space left on device")

    folder = ResizableFolder(tmp_path, opened(tmp_path, 1).cluster, format_all=full)
    with pytest.raises(CannotStart, match="no space left"):
        folder.grow()
    assert (size_of(tmp_path), settings(tmp_path, 1)["default.replication.factor"]) == ("1", "1")


def test_the_new_node_is_secured_before_it_is_a_part(tmp_path: Path) -> None:
    secured: list[tuple[int, str | None]] = []

    def secure(cluster: LocalCluster) -> None:
        secured.append((cluster.nodes[-1].node_id, size_of(tmp_path)))

    folder = ResizableFolder(tmp_path, opened(tmp_path, 1).cluster, secure=secure, format_all=formatted)
    folder.grow()
    assert secured == [(2, "1")]

"""The TOML file of clusters."""

from pathlib import Path

import pytest

from barnabas.client.cluster_file import BadClusterFile, ClusterEntry, read_cluster_file

GOOD = """
[clusters.production]
bootstrap-server = "kafka1:9092"
command-config = "production.properties"

[clusters."my laptop"]
timeout-ms = 2000
"""


def test_clusters_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "console.toml").write_text(GOOD)
    assert read_cluster_file(tmp_path / "console.toml") == [
        ClusterEntry("production", "kafka1:9092", tmp_path / "production.properties", None),
        ClusterEntry("my laptop", None, None, 2000),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[clusters", "it is not TOML"),
        ("", "it has no cluster"),
        ("[cluster.a]", "unknown table cluster"),
        ("clusters = 3", "it has no cluster"),
        ("[clusters]\na = 3", "cluster a: write"),
        ("[clusters.a]\nbootstrap-serve = 'x'", "unknown setting bootstrap-serve; did you mean bootstrap-server?"),
        ("[clusters.a]\ntimeout-ms = '1'", "timeout-ms must be a number"),
        ("[clusters.a]\ntimeout-ms = true", "timeout-ms must be a number"),
        ("[clusters.a]\ntimeout-ms = 0", "timeout-ms must be at least 1"),
        ("[clusters.a]\nbootstrap-server = 1", "bootstrap-server must be a text"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "console.toml").write_text(text)
    with pytest.raises(BadClusterFile) as found:
        read_cluster_file(tmp_path / "console.toml")
    assert message in str(found.value)
    assert "\n" not in str(found.value)

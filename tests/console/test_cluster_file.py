"""The TOML file of clusters."""

from pathlib import Path

import pytest

from barnabas.console.cluster_file import BadClusterFile, ClusterEntry, read_cluster_file
from barnabas.decoding.masks import MaskRule

GOOD = """
[clusters.production]
bootstrap-server = "kafka1:9092"
command-config = "production.properties"

[clusters."my laptop"]
timeout-ms = 2000
schemas = "http://localhost:8081"

[clusters.other]
schemas = "schemas"

[[masks]]
topics = ["orders"]
fields = ["value.card", "key"]
"""
MASKS = (MaskRule(("orders",), ("value.card", "key")),)


def test_clusters_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "console.toml").write_text(GOOD)
    assert read_cluster_file(tmp_path / "console.toml") == [
        ClusterEntry("production", "kafka1:9092", tmp_path / "production.properties", None, masks=MASKS),
        ClusterEntry("my laptop", None, None, 2000, "http://localhost:8081", MASKS),
        ClusterEntry("other", None, None, None, str(tmp_path / "schemas"), MASKS),
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
        ("masks = 1\n[clusters.a]", "write [[masks]]"),
        ("masks = [1]\n[clusters.a]", "mask 1: write [[masks]]"),
        ("[clusters.a]\n[[masks]]\ntopics = ['a']", "mask 1: fields must be a list of texts"),
        (
            "[clusters.a]\n[[masks]]\ntopics = []\nfields = ['key']",
            "mask 1: topics must be a list of texts, and not empty",
        ),
        ("[clusters.a]\n[[masks]]\ntopic = ['a']", "mask 1: unknown setting topic; did you mean topics?"),
        (
            "[clusters.a]\n[[masks]]\ntopics = ['a']\nfields = ['card']",
            "field card does not begin with key, value, headers",
        ),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "console.toml").write_text(text)
    with pytest.raises(BadClusterFile) as found:
        read_cluster_file(tmp_path / "console.toml")
    assert message in str(found.value)
    assert "\n" not in str(found.value)

"""The file of `topic apply`: what it means, and one sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.wanted_topics import BadTopicFile, WantedTopic, read_wanted_topics


def read(folder: Path, text: str) -> list[WantedTopic]:
    path = folder / "topics.toml"
    path.write_text(text)
    return read_wanted_topics(path)


def test_a_topic_takes_from_the_defaults_what_it_does_not_say(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        [defaults]
        partitions = 6
        replication-factor = 3
        [defaults.configs]
        min.insync.replicas = 2
        retention.ms = 1
        [topics.orders]
        partitions = 12
        [topics.orders.configs]
        "retention.ms" = 604800000
        cleanup.policy = ["compact", "delete"]
        preallocate = true
        min.cleanable.dirty.ratio = 0.25
        [topics."orders.dlq"]
        replicas = [[1, 2], [2, 3]]
        """,
    )
    assert found == [
        WantedTopic(
            "orders",
            12,
            3,
            None,
            {
                "min.insync.replicas": "2",
                "retention.ms": "604800000",
                "cleanup.policy": "compact,delete",
                "preallocate": "true",
                "min.cleanable.dirty.ratio": "0.25",
            },
        ),
        WantedTopic(
            "orders.dlq", None, None, ((1, 2), (2, 3)), {"min.insync.replicas": "2", "retention.ms": "1"}
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": it names no topic; write [topics.NAME]"),
        ("a = ", ": it is not TOML: Invalid value (at end of document)"),
        ("[topic.a]", ", line 1: unknown table topic; did you mean topics?; a file has [defaults] and [topics.NAME]"),
        ("# partitons = 1\n[topics.a]\npartitons = 3", ", line 3: topic a: unknown key partitons; did you mean partitions?"),
        ("[topics.a.config]", ", line 1: topic a: unknown key config; did you mean configs?"),
        ("[defaults]\n[topics.a]\n[defaults.config]", ", line 3: defaults: unknown key config; did you mean configs?"),
        (
            "[topics.a]\nretention_time = 3",
            ", line 2: topic a: unknown key retention_time; there are partitions, replication-factor, replicas, configs, and"
            " settings stand under configs",
        ),
        (
            "[topics.com.example]",
            ', line 1: topic com: unknown key example; a name with a dot stands in quotes: [topics."com.example"]',
        ),
        ("[topics]\na = 3", ", line 2: write [topics.a] with partitions, replication-factor, replicas, configs"),
        ("[topics.a]\npartitions = 0", ", line 2: topic a: partitions must be a number, at least 1"),
        ("[topics.a]\npartitions = true", ", line 2: topic a: partitions must be a number, at least 1"),
        ("defaults = 1\n[topics.a]", ", line 1: write [defaults] with partitions, replication-factor, configs"),
        (
            "[defaults]\nreplicas = [[1]]\n[topics.a]",
            ", line 2: defaults: unknown key replicas; there are partitions, replication-factor, configs, and settings stand under"
            " configs",
        ),
        (
            "[topics.a]\nreplicas = [1, 2]",
            ", line 2: topic a: replicas must list the brokers of each partition: [[1, 2], [2, 3]]",
        ),
        ("[topics.a]\nreplicas = [['1']]", ", line 2: topic a: replicas of partition 0 must be ids of brokers"),
        ("[topics.a]\nreplicas = [[1, 1]]", ", line 2: topic a: replicas of partition 0 name a broker twice"),
        ("[topics.a]\nreplicas = [[1, 2], [1]]", ", line 2: topic a: partition 1 has another number of replicas than partition 0"),
        (
            "[topics.a]\nreplicas = [[1]]\npartitions = 1",
            ", line 3: topic a: partitions contradicts replicas: leave one of them out",
        ),
        ("[topics.a]\nconfigs = 1", ", line 2: topic a: write [topics.a.configs] with settings"),
        (
            "[topics.a.configs]\nretention.ms = 1979-05-27",
            ", line 2: topic a: retention.ms must be a text, a number, true or false, or a list of texts",
        ),
        (
            "[topics.a.configs]\nretention.ms = 1\n'retention.ms' = 2",
            ", line 2: topic a: retention.ms stands there twice, with quotes and without",
        ),
        (
            "topics = {a = {configs = {barnabas.ordered.growth = '2>4'}}}",
            ": topic a: barnabas.ordered.growth is not for a file: `barnabas topic grow --ordered` keeps its state there",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadTopicFile) as raised:
        read(tmp_path, text)
    assert str(raised.value) == f"{tmp_path}/topics.toml{said}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadTopicFile, match=r"absent\.toml: no such file or directory"):
        read_wanted_topics(tmp_path / "absent.toml")
    (tmp_path / "latin").write_bytes(b"# \xff")
    with pytest.raises(BadTopicFile, match="latin: it is not TOML"):
        read_wanted_topics(tmp_path / "latin")

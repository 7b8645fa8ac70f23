"""Names of files and directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.log import checkpoints, clean_shutdown_file, directory_lock, log_files, meta_properties


def test_offset_files() -> None:
    assert log_files.file_name(123, log_files.LOG) == "00000000000000000123.log"
    assert log_files.parse_file_name("00000000000000000123.timeindex") == (123, ".timeindex")
    for name in ("123.log", "00000000000000000123.log.deleted", "leader-epoch-checkpoint", "0000000000000000012a.log"):
        assert log_files.parse_file_name(name) is None


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("orders", None),
        ("orders-x", None),
        ("-0", None),
        ("orders-0.0123-delete", None),
        ("orders-0.0123-stray", None),
        ("not a topic-0", None),
    ],
)
def test_partition_directories(name: str, parsed: tuple[str, int] | None) -> None:
    assert log_files.parse_partition_dir_name(name) == parsed
    if parsed is not None:
        assert log_files.partition_dir_name(*parsed) == name


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        ("../../evil/x", 0),
        ("a/b", 0),
        ("..", 0),
        (".", 0),
        ("", 0),
        ("a\x00", 0),
        ("a\n", 0),
        ("a" * 250, 0),
        ("a", -1),
    ],
)
def test_a_name_that_leads_elsewhere_does_not_become_a_path(topic: str, partition: int) -> None:
    with pytest.raises(AssertionError):
        log_files.partition_dir_name(topic, partition)
    with pytest.raises(AssertionError):
        log_files.moved_dir_name(topic, partition, "0123", log_files.STRAY_DIR_SUFFIX)


def test_each_kind_of_file_has_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
    for name in (
        log_files.LOG,
        log_files.INDEX,
        log_files.TIME_INDEX,
        log_files.TRANSACTION_INDEX,
        log_files.SNAPSHOT,
        log_files.DELETED,
        log_files.CLEANED,
        log_files.SWAP,
        log_files.LEADER_EPOCH_CHECKPOINT,
        log_files.PARTITION_METADATA,
        log_files.DELETE_DIR_SUFFIX,
        checkpoints.RECOVERY_POINT_CHECKPOINT,
        checkpoints.LOG_START_OFFSET_CHECKPOINT,
        checkpoints.REPLICATION_OFFSET_CHECKPOINT,
        clean_shutdown_file.CLEAN_SHUTDOWN_FILE,
        directory_lock.LOCK_FILE,
        log_files.STRAY_DIR_SUFFIX,
        meta_properties.META_PROPERTIES,
    ):
        assert name in page, name

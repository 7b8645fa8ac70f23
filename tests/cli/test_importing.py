from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.export_files import file_format
from barnabas.cli.failure import Failure
from barnabas.cli.import_progress import STATE_TOPIC, ImportProgress
from barnabas.cli.importing import Import
from barnabas.cli.session import Session
from barnabas.embedded.broker import Broker
from tests.cli.exports import content, content_of, manifest, odd_records
from tests.cli.test_export_files import made_file

PROGRESS = ImportProgress("name", "digest", "copy", "id", 20)


class NamedOutput:
    is_json = True


def session_of(barnabas: Broker) -> Session:
    output: Any = NamedOutput()
    return Session(barnabas.bootstrap_servers, {}, None, output)


@pytest.mark.slow
def test_it_goes_on_within_a_file_and_counts_times_that_cannot_be_sent(barnabas: Broker, tmp_path: Path) -> None:
    barnabas.create_topic("copy", partitions=2, config={"retention.ms": "-1"})
    barnabas.create_topic(STATE_TOPIC)
    records = [replace(each, partition=each.offset // 10) for each in odd_records(20)]
    records[19] = replace(records[19], timestamp_ms=0)
    files = [made_file(tmp_path, "jsonl", records[:10]), made_file(tmp_path, "jsonl", records[10:])]
    made = file_format("jsonl")
    first = Import(tmp_path, manifest("jsonl", files[0]), made, replace(PROGRESS))
    first.run(session_of(barnabas))
    assert (first.sent_before, first.progress.sent, first.was_finished) == (0, 10, False)
    # The second one does not know what the first one has done but by its notes.
    second = Import(tmp_path, manifest("jsonl", *files), made, replace(PROGRESS))
    second.run(session_of(barnabas))
    assert (second.sent_before, second.progress.sent, second.without_time) == (10, 20, 1)
    assert content_of(barnabas.bootstrap_servers, "copy")[:-1] == content(records)[:-1]
    third = Import(tmp_path, manifest("jsonl", *files), made, replace(PROGRESS))
    third.run(session_of(barnabas))
    assert third.was_finished


@pytest.mark.slow
def test_a_file_with_records_of_another_partition_is_an_error(barnabas: Broker, tmp_path: Path) -> None:
    barnabas.create_topic("copy", partitions=2)
    barnabas.create_topic(STATE_TOPIC)
    file = made_file(tmp_path, "jsonl", odd_records(20))
    work = Import(tmp_path, manifest("jsonl", file), file_format("jsonl"), replace(PROGRESS))
    with pytest.raises(Failure, match="cannot be read: a record of partition 1 is in it"):
        work.run(session_of(barnabas))
    assert content_of(barnabas.bootstrap_servers, "copy") == []

"""Several directories: which has a log, and what they say together."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directories import LogDirectories
from barnabas.log.log_manager import LogManager
from barnabas.protocol.primitives import Uuid
from barnabas.simulation.disk import SimDisk

ROOTS = ("/a", "/b", "/c")
IDS = [Uuid(bytes([number]) * 16) for number in (1, 2, 3)]
NOWHERE, TOPIC = bytes(16), Uuid(b"t" * 16)


def opened(disk: SimDisk) -> LogDirectories:
    logs = LogDirectories([LogManager(disk, root, now_ms=lambda: 1) for root in ROOTS])
    logs.ids = IDS
    for each in logs.directories:
        asyncio.run(each.open())
    return logs


def place(logs: LogDirectories, topic: str, assigned: bytes = NOWHERE) -> str:
    return ROOTS[IDS.index(logs.place(topic, 0, assigned))]


def test_the_fewest_logs_count_with_those_that_have_no_files_yet() -> None:
    logs = opened(SimDisk())
    assert [place(logs, topic) for topic in "tuvw"] == ["/a", "/b", "/c", "/a"]
    assert place(logs, "t") == "/a"
    logs.delete("u", 0)
    assert place(logs, "x") == "/b"
    assert "replicas=4" in repr(logs)


def test_the_metadata_decides_only_where_no_log_is() -> None:
    logs = opened(SimDisk())
    assert place(logs, "t", IDS[2]) == "/c"
    assert logs.get_or_create("t", 0, TOPIC, LogConfig()).directory == "/c/t-0"
    assert place(logs, "t", IDS[0]) == "/c"
    assert place(logs, "u", b"?" * 16) == "/a"
    assert logs.directory_of("t", 0).root_dir == "/c"


def test_logs_are_found_where_they_are() -> None:
    disk = SimDisk()
    logs = opened(disk)
    for topic, directory in (("t", IDS[1]), ("u", IDS[2])):
        logs.place(topic, 0, directory)
        logs.get_or_create(topic, 0, TOPIC, LogConfig())
    logs.broker_epoch = 7
    assert [key for key, _ in logs] == [("t", 0), ("u", 0)]
    assert logs.is_locked
    asyncio.run(logs.close())
    again = opened(disk)
    assert (again.broker_epoch, again.is_recovered) == (7, True)
    again.check()
    found = again.get("u", 0)
    assert found is not None
    assert found.directory == "/c/u-0"
    assert again.get("v", 0) is None
    assert asyncio.run(again.set_strays_aside(lambda *key: key[0] == "u")) == [("t", 0)]
    assert place(again, "v") == "/a"
    asyncio.run(again.housekeeping())


def test_one_directory_that_was_not_stopped_takes_the_epoch_away() -> None:
    disk = SimDisk()
    logs = opened(disk)
    logs.broker_epoch = 7
    asyncio.run(logs.claim.prepare(7))
    asyncio.run(logs.close())
    disk.remove("/b/.kafka_cleanshutdown")
    if disk.exists("/b/.barnabas_running"):
        disk.remove("/b/.barnabas_running")
    assert opened(disk).broker_epoch == -1


def in_two(*topic_ids: Uuid) -> LogDirectories:
    """Return logs of t-0 in a and in c, of topics with these ids."""
    disk = SimDisk()
    for root, topic_id in zip(("/a", "/c"), topic_ids, strict=True):
        made = LogManager(disk, root, now_ms=lambda: 1)
        asyncio.run(made.open())
        made.get_or_create("t", 0, topic_id, LogConfig())
        asyncio.run(made.close())
    logs = opened(disk)
    logs.check()
    return logs


def holders(logs: LogDirectories) -> list[str]:
    return [each.root_dir for each in logs.online if ("t", 0) in each]


def test_of_a_log_in_two_directories_the_metadata_names_one(caplog: pytest.LogCaptureFixture) -> None:
    for assigned, kept in ((IDS[0], "/a"), (IDS[2], "/c")):
        logs = in_two(TOPIC, TOPIC)
        logs.settle("t", 0, TOPIC, assigned)
        logs.settle("t", 0, TOPIC, assigned)
        assert (holders(logs), logs.place("t", 0, assigned)) == ([kept], assigned)
    assert "t-0 is in two directories; this one is set aside and kept: /c/t-0." in caplog.text


def test_of_a_log_in_two_directories_the_one_of_the_topic_stays() -> None:
    logs = in_two(Uuid(b"o" * 16), TOPIC)
    logs.settle("t", 0, TOPIC, IDS[0])
    assert holders(logs) == ["/c"]
    logs = in_two(TOPIC, TOPIC)
    logs.settle("t", 0, Uuid(b"n" * 16), IDS[0])
    assert holders(logs) == []


def test_a_log_in_two_directories_and_in_the_metadata_in_a_third() -> None:
    logs = in_two(TOPIC, TOPIC)
    with pytest.raises(KafkaStorageError, match="t-0 is in /a and in /c, and the metadata has it elsewhere"):
        logs.settle("t", 0, TOPIC, IDS[1])
    assert holders(logs) == ["/a", "/c"]


def test_a_replica_that_is_not_here_yet_may_have_a_preferred_directory() -> None:
    logs = opened(SimDisk())
    for topic, assigned, root in (("t", NOWHERE, "/c"), ("u", IDS[1], "/b")):
        logs.prefer(topic, 0, logs.online[2])
        assert place(logs, topic, assigned) == root


def test_the_cleaners_count_as_one() -> None:
    logs = opened(SimDisk())
    config = CleanerConfig(enable=False)
    logs.cleaner.config = config
    assert all(each.cleaner.config is config for each in logs.directories)
    assert logs.cleaner.config is config
    for number, each in enumerate(logs.directories, 1):
        each.cleaner.stats.cleanings = number
        each.cleaner.stats.dirtiest_ratio = number / 10
    stats = logs.cleaner.stats
    assert (stats.cleanings, stats.max_dirty_percent, stats.cleaner_recopy_percent) == (6, 30, 0)
    assert (logs.cleaner.worker_deaths, logs.cleaner.uncleanable) == (0, frozenset())
    logs.cleaner.close()


def test_a_directory_that_fails_keeps_its_replicas_and_gets_no_others() -> None:
    disk = SimDisk()
    logs = opened(disk)
    logs.broker_epoch = 7
    assert [place(logs, topic) for topic in "tuv"] == ["/a", "/b", "/c"]
    logs.get_or_create("u", 0, TOPIC, LogConfig())
    failed = logs.online[1]
    lost = logs.take_offline(failed, "broken")
    assert (logs.ids, lost.id, logs.offline, lost.names()) == ([IDS[0], IDS[2]], IDS[1], [lost], [("u", 0)])
    assert logs.place("u", 0, NOWHERE) == IDS[1]
    assert (logs.offline_home("u", 0), logs.offline_home("t", 0), logs.directory_of("u", 0)) == (lost, None, lost)
    for ask in (lambda: logs.get("u", 0), lambda: logs.get_or_create("u", 0, TOPIC, LogConfig())):
        with pytest.raises(KafkaStorageError, match="/b is offline: broken"):
            ask()
    assert [logs.place(topic, 0, IDS[1]) for topic in "wx"] == [IDS[0], IDS[2]]
    assert (logs.is_locked, logs.is_recovered, logs.broker_epoch) == (True, True, -1)
    logs.delete("u", 0)
    assert logs.offline_home("u", 0) is None
    asyncio.run(failed.close(clean=False))
    asyncio.run(logs.close())
    assert [root for root in ROOTS if disk.exists(f"{root}/.kafka_cleanshutdown")] == ["/a", "/c"]
    assert not disk.exists("/a/.barnabas_running")


def test_a_replica_may_be_in_a_directory_that_cannot_be_read() -> None:
    logs = LogDirectories([LogManager(SimDisk(), root, now_ms=lambda: 1) for root in ROOTS])
    lost = logs.take_offline(logs.online[1], "broken", are_replicas_known=False)
    logs.ids = [IDS[0], IDS[2]]
    for each in logs.online:
        asyncio.run(each.open())
    # Nobody knows yet where t is: no log of it is made.
    with pytest.raises(KafkaStorageError):
        logs.get_or_create("t", 0, TOPIC, LogConfig())
    with pytest.raises(KafkaStorageError):
        logs.get("t", 0)
    assert logs.place("t", 0, IDS[1]) == IDS[1]
    assert logs.offline_home("t", 0) is lost
    assert logs.place("u", 0, IDS[2]) == IDS[2]
    assert logs.place("v", 0, NOWHERE, is_new=True) == IDS[0]
    assert logs.offline_home("v", 0) is None
    # If its id is known, a replica of another lost disk is not in it.
    lost.id = IDS[1]
    assert logs.place("w", 0, b"?" * 16) in (IDS[0], IDS[2])
    assert logs.place("x", 0, IDS[1]) == IDS[1]

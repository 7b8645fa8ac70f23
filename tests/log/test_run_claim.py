"""A broker claims that it has all it wrote after a kill, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.run_claim import RunClaim
from barnabas.log.running_file import RUNNING_FILE
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once
from tests.log.story import CONFIG, ROOT, TOPIC, TOPIC_ID, append, batch, manager, running

EPOCH = 42
PATH = f"{ROOT}/{RUNNING_FILE}"
LOG = f"{ROOT}/orders-0/00000000000000000000.log"


def with_checkpoint(disk: SimDisk) -> tuple[LogManager, PartitionLog]:
    """Return the logs of a broker, and one of them; the checkpoint has its end as the high watermark."""
    opened = running(disk, EPOCH)
    log = opened.get(TOPIC, 0)
    assert log is not None
    log.high_watermark = log.log_end_offset
    at_once(opened.checkpoint())
    return opened, log


def test_a_killed_broker_has_all_it_wrote() -> None:
    disk = SimDisk()
    running(disk, EPOCH)
    disk.last_write = None
    disk.kill()
    again = manager(disk)
    assert (again.had_clean_shutdown, again.broker_epoch, again.claim.doubt) == (False, EPOCH, "")
    disk.kill()
    assert manager(disk).broker_epoch == EPOCH, "nor has a start that is killed before it registers lost anything"


def test_a_write_that_the_process_died_in_was_never_acknowledged() -> None:
    disk = SimDisk()
    log = running(disk, EPOCH).get(TOPIC, 0)
    assert log is not None
    torn = log.log_end_offset.to_bytes(8) + bytes(batch(log.log_end_offset))[8:]
    for size in (1, 20, 61, len(torn) - 1):
        left = disk.copy()
        left.copies = disk.copies  # the same disk
        left.put(LOG, disk.contents(LOG) + torn[:size])
        again = manager(left)
        found = again.get(TOPIC, 0)
        assert found is not None
        assert (found.recovered.bytes_cut, again.broker_epoch, again.claim.doubt) == (size, EPOCH, "")


def test_a_machine_that_lost_its_power_claims_nothing() -> None:
    for seed in range(10):
        disk = SimDisk(seed)
        running(disk, EPOCH)
        disk.crash()
        again = manager(disk)
        assert (again.broker_epoch, again.claim.doubt) == (-1, "the machine has started again since")


def test_a_copy_claims_nothing() -> None:
    disk = SimDisk()
    running(disk, EPOCH)
    disk.kill()
    assert manager(disk.copy()).claim.doubt == "the file system has been mounted again since"
    content = disk.contents(PATH)
    disk.remove(PATH)
    disk.open(PATH, create=True).pwrite(content, 0)
    again = manager(disk)
    assert (again.broker_epoch, again.claim.doubt) == (-1, "the directory is a copy")


def test_logs_that_lack_something_claim_nothing() -> None:
    disk = SimDisk()
    with_checkpoint(disk)
    disk.last_write = None
    disk.kill()
    content = disk.contents(LOG)
    batch_bytes = len(content) // 3

    def doubt_with(log_bytes: bytes | None) -> str:
        left = disk.copy()
        left.copies = disk.copies
        if log_bytes is None:
            left.rmtree(f"{ROOT}/orders-0")
        else:
            left.put(LOG, log_bytes)
        again = manager(left)
        assert again.broker_epoch == (-1 if again.claim.doubt else EPOCH)
        return again.claim.doubt

    assert doubt_with(content) == ""
    missing = "records are missing in orders-0"
    assert doubt_with(content[:-batch_bytes]) == missing, "it ends below the high watermark"
    assert doubt_with(content[:-batch_bytes] + bytes(batch_bytes)) == missing, "a page that the system has lost"
    assert doubt_with(content[:-1] + b"?") == missing, "a wrong checksum"
    assert doubt_with(None) == missing, "an operator has removed it"


def test_of_a_deleted_log_nothing_is_missing() -> None:
    disk = SimDisk()
    opened, log = with_checkpoint(disk)
    log.reconfigure(replace(CONFIG, file_delete_delay_ms=0))
    opened.delete(TOPIC, 0)
    at_once(opened.housekeeping())
    assert not disk.exists(LOG)
    disk.kill()
    again = manager(disk)
    assert (again.broker_epoch, again.claim.doubt) == (EPOCH, "")


def test_many_damaged_logs_are_named_in_part() -> None:
    disk = SimDisk()
    opened = running(disk, EPOCH)
    for index in range(1, 8):
        append(opened.get_or_create(TOPIC, index, TOPIC_ID, CONFIG), 1)
    for _, log in opened:
        log.high_watermark = log.log_end_offset
    at_once(opened.checkpoint())
    disk.last_write = None
    disk.kill()
    for index in range(1, 8):
        disk.put(LOG.replace("orders-0", f"orders-{index}"), b"")
    named = ", ".join(f"orders-{index}" for index in range(1, 6))
    assert manager(disk).claim.doubt == f"records are missing in {named} and 2 more"


def test_after_a_failed_sync_the_next_run_claims_nothing() -> None:
    disk = SimDisk()
    opened = running(disk, EPOCH)
    log = opened.get(TOPIC, 0)
    assert log is not None
    disk.on_call = lambda call, path: OSError(5, "simulated") if call == "sync" and path == LOG else None
    with pytest.raises(Exception, match="failed"):
        log.flush()
    disk.on_call = None
    assert not disk.exists(PATH)
    at_once(opened.claim.prepare(EPOCH + 1))
    assert not disk.exists(PATH), "nor when it registers once more"
    disk.kill()
    assert manager(disk).claim.doubt == f"there is no {RUNNING_FILE}"


def test_a_sync_that_fails_while_the_file_is_written_leaves_no_claim() -> None:
    disk = SimDisk()
    running(disk, EPOCH)
    loop = asyncio.new_event_loop()

    def in_a_thread(write: Callable[[], None]) -> asyncio.Future[None]:
        claim.give_up()  # in the loop, before the thread renames the file
        write()
        done = loop.create_future()
        done.set_result(None)
        return done

    claim = RunClaim(disk, ROOT, in_a_thread)
    at_once(claim.prepare(EPOCH + 1))
    loop.close()
    assert not disk.exists(PATH)
    disk.kill()
    assert manager(disk).broker_epoch == -1


def test_a_file_that_cannot_be_removed_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    log = running(disk, EPOCH).get(TOPIC, 0)
    assert log is not None
    disk.on_call = lambda call, path: OSError(5, "simulated") if call in ("sync", "remove") else None
    with pytest.raises(Exception, match="failed"):
        log.flush()
    assert f"{ROOT}: cannot remove {RUNNING_FILE}: simulated" in caplog.messages


def test_a_disk_that_does_not_take_the_file_costs_only_the_claim(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    opened = manager(disk)
    disk.on_call = lambda call, path: OSError(28, "No space left on device") if RUNNING_FILE in path else None
    at_once(opened.claim.prepare(EPOCH))
    assert "so that a kill will count as a loss of power: No space left on device" in caplog.text

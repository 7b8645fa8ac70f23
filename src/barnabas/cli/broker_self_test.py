"""`barnabas broker self-test`: the disks of this machine, and the way from it to each broker.

`rpk cluster self-test` asks the brokers to test themselves. Here the command tests the machine it runs on, so it works before the first
start, and with any broker. Nothing stays: the file of a test has no name.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from barnabas.cli.disk_test import NoRoom, measure_disk
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.latencies import Latencies
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin
from barnabas.client.properties import read_properties
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError
from barnabas.words.byte_sizes import format_bytes
from barnabas.words.printable import printable

_TRIPS = 50
_TRIPS_WITHIN_S = 2.0
_NO_SYNC_MS = 0.02
_SLOW_SYNC_MS = 50


@click.command("self-test")
@click.argument("directories", nargs=-1, metavar="[DIR]…", type=click.Path())
@click.option(
    "-c",
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Test the directories of this file.",
)
@click.option("--size-mb", type=click.IntRange(1, 65536), default=256, show_default=True, help="Bytes to write, in MB.")
@click.option("--within", "within_ms", type=Duration(), default="10s", show_default=True,
              help="How long writing, and syncing, may take.")  # fmt: skip
@click.option("--no-network", is_flag=True, help="Only the disks: no broker is asked.")
@session_options
def self_test(
    session: Session,
    directories: tuple[str, ...],
    config: str | None,
    size_mb: int,
    within_ms: int,
    no_network: bool,
) -> None:
    """Measure this machine's disks, and the network to the brokers.

    In each directory it writes and syncs one file, which is gone at the end. Run it on the machine of a node, best before the first
    start: a broker that works meanwhile is slower, and so is the test.

    \b
    barnabas broker self-test /var/lib/barnabas --no-network
    """
    chosen = [*directories, *(_log_dirs(config) if config else ())]
    if no_network and not chosen:
        raise click.UsageError("Nothing to test: name directories or --config FILE, or leave --no-network out.")
    tables: list[Table] = []
    failures: list[Failure] = []
    notes: list[str] = []
    if chosen:
        disks, refused, notes = tested_disks(chosen, size_mb * 1_000_000, within_ms / 1000)
        tables.append(disks)
        failures += refused
    if not no_network:
        with session.admin() as admin:
            network, unreached = tested_network(admin)
        tables.append(network)
        failures += unreached
    data = {("disks" if "DIRECTORY" in table.columns else "network"): table.objects() for table in tables}
    session.output.show_found(Found(data, [each for each in tables if each.rows]))
    for note in notes:
        click.echo(note, err=True)
    if not chosen:
        click.echo("no disk was tested: name directories, or --config FILE for its directories", err=True)
    if failures:
        raise Failures(failures)


def _log_dirs(path: str) -> list[str]:
    try:
        properties = read_properties(path)
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from None
    text = properties.get("log.dirs") or properties.get("log.dir") or ""
    of_metadata = properties.get("metadata.log.dir", "")
    found = [each.strip() for each in (*text.split(","), of_metadata) if each.strip()]
    if not found:
        raise Failure(f"{printable(path)} has no log.dirs", "name the directories instead")
    return found


def tested_disks(directories: Sequence[str], size: int, within_s: float) -> tuple[Table, list[Failure], list[str]]:
    """Measure the disks of directories, one after the other: they may be on one disk.

    Returns:
        A row for each, the directories that could not be tested, and sentences about what was seen.
    """
    rows: list[tuple[object, ...]] = []
    failures, notes = [], []
    for each in dict.fromkeys(directories):
        shown = printable(each)
        try:
            found = measure_disk(each, size, within_s)
        except NoRoom as error:
            failures.append(Failure(f"{shown}: {error}", "--size-mb N writes less"))
            continue
        except OSError as error:
            hint = "make it on the disk to test, or name another" if isinstance(error, FileNotFoundError) else None
            failures.append(Failure(f"{shown}: {(error.strerror or str(error)).lower()}", hint))
            continue
        sync = found.sync
        rate = f"{format_bytes(round(found.bytes_per_s))}/s"
        rows.append(
            (each, format_bytes(found.written), rate, found.syncs, sync.p50_ms, sync.p99_ms, sync.max_latency_ms)
        )
        if sync.p50_ms < _NO_SYNC_MS:
            notes.append(
                f"{shown}: a sync takes no time, so nothing reaches a disk: a tmpfs, or one that does not sync"
            )
        elif sync.p99_ms > _SLOW_SYNC_MS:
            notes.append(
                f"{shown}: one sync of a hundred takes over {_SLOW_SYNC_MS} ms; every change of metadata waits for one"
            )
    columns = ("DIRECTORY", "WRITTEN", "WRITE-RATE", "SYNCS", "SYNC-P50-MS", "SYNC-P99-MS", "SYNC-MAX-MS")
    return Table(columns, rows, hidden_first=("SYNCS", "SYNC-P50-MS", "WRITTEN", "SYNC-MAX-MS")), failures, notes


def tested_network(admin: Admin) -> tuple[Table, list[Failure]]:
    """Measure the way to each broker: a new connection, and the shortest request that every broker answers.

    Returns:
        A row for each broker, and those that did not answer.

    Raises:
        KafkaError: no broker answers.
    """
    rows: list[tuple[object, ...]] = []
    failures = []
    cluster = admin.cluster
    nodes = sorted(admin.describe_cluster().brokers, key=lambda node: node.id)
    for node in nodes:
        trips = Latencies()
        try:
            cluster.connection(node.id).close()  # it may be an open one, and the name is looked up now
            begun = time.perf_counter()
            connection = cluster.connection(node.id)
            connected_ms = round((time.perf_counter() - begun) * 1000, 3)
            end = time.perf_counter() + _TRIPS_WITHIN_S
            while len(trips) < _TRIPS and (not trips or time.perf_counter() < end):
                before = time.perf_counter()
                connection.request(messages.ApiVersionsRequest(), version=0)
                trips.add(time.perf_counter() - before)
        except KafkaError as error:
            failures.append(failure_of(error, f"broker {node.id}"))
            continue
        found = trips.summary()
        at = f"{node.host}:{node.port}"
        rows.append((node.id, at, connected_ms, len(trips), found.p50_ms, found.p99_ms, found.max_latency_ms))
    columns = ("BROKER", "ADDRESS", "CONNECT-MS", "TRIPS", "TRIP-P50-MS", "TRIP-P99-MS", "TRIP-MAX-MS")
    return Table(columns, rows, hidden_first=("TRIPS", "CONNECT-MS", "TRIP-P50-MS", "TRIP-MAX-MS")), failures

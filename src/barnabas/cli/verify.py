"""`barnabas verify`: does the cluster keep Kafka's promises?

Exit codes: 0 without an anomaly, 1 with one, or if the run failed, 130 without an anomaly after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.failure import Failure, Quiet
from barnabas.cli.output import Table
from barnabas.cli.progress import Measured, on_terminal, shown
from barnabas.cli.session import Session, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.cli.wording import counted
from barnabas.verify.anomalies import ALLOWED
from barnabas.verify.faults import BrokerFailed, LocalBroker
from barnabas.verify.history import read_history
from barnabas.verify.verdict import Verdict
from barnabas.verify.verdict import check as check_history

if TYPE_CHECKING:
    from barnabas.verify.run import Run

_SHOWN = 3
"""Examples of each anomaly; JSON and the history have more."""
_INTERLEAVED = "records of transactions may interleave in the log"
_REBALANCED = "a rebalance may have moved the partition in between"
_INTERRUPTED = 130
_AFTER_WORK_S = 10
"""Seconds that a run takes after its work, on a fast machine and if no transaction has to expire."""


@click.command()
@click.option(
    "--time",
    "seconds",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    help="Seconds of work; reading everything back takes about 10 more.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of what the clients do.")
@click.option("--protocol", type=click.Choice(["auto", "v1", "v2"]), default="auto", show_default=True,
              help="Of transactions: v1 by librdkafka, v2 (KIP-890) by a producer of our own.")  # fmt: skip
@click.option("--group-protocol", type=click.Choice(["classic", "consumer"]), default="classic", show_default=True,
              help="Of consumers in groups; consumer is KIP-848.")  # fmt: skip
@click.option("--plain", type=click.IntRange(min=0), default=2, show_default=True, help="Clients that send and poll.")
@click.option("--txn", type=click.IntRange(min=0), default=4, show_default=True, help="Clients with transactions.")
@click.option("--transform", type=click.IntRange(min=0), default=2, show_default=True,
              help="Clients that consume in a group and produce, exactly once.")  # fmt: skip
@click.option("-p", "--partitions", type=click.IntRange(min=1), default=2, show_default=True, help="Of each topic.")
@click.option("-r", "--replication-factor", type=int, default=-1, help="Of each topic.  [default: the broker's]")
@click.option("--start", is_flag=True, help="Start a barnabas and verify it.")
@click.option(
    "--data-dir", type=click.Path(file_okay=False), help="Where --start keeps its data.  [default: temporary]"
)
@click.option("--broker-command", help="Start the broker with this command, which stays in the foreground.")
@click.option("--kill-every", type=click.FloatRange(min=0), default=0, metavar="SECONDS",
              help="Kill the started broker about this often (SIGKILL) and start it again.")  # fmt: skip
@click.option("--history", type=click.Path(dir_okay=False), help="Write the history to this file.")
@click.option("--check", type=click.Path(exists=True, dir_okay=False), help="Check this history; run nothing.")
@click.option("--keep-topics", is_flag=True, help="Do not delete the run's topics.")
@session_options
def verify(
    session: Session,
    start: bool,
    data_dir: str | None,
    broker_command: str | None,
    history: str | None,
    check: str | None,
    kill_every: float,
    **options: Any,
) -> None:
    """Check that no record is lost, doubled, torn from its transaction or read too early.

    Clients append unique numbers and read them back, in transactions and without, in groups and on their own. The checker
    looks for the anomalies that Jepsen looks for in Kafka. It works with any Kafka address; with --start or --broker-command
    it can kill the broker.
    """
    if check is not None:
        try:
            read = read_history(Path(check))
        except ValueError as error:
            raise Failure(f"{check}: {error}") from None
        verdict = check_history(read)
        if verdict.valid and not verdict.statistics["acknowledged"]:
            raise Failure(f"{check}: no operation of this history was acknowledged, so it proves nothing")
        if not any(op.final for op in read.ops):
            warning = "the run did not end: what it would have read at the end counts as unseen"
            click.echo(f"warning: {check}: {warning}", err=True)
        _report(session, verdict, check)
        return
    if start and broker_command:
        raise click.UsageError("--start and --broker-command exclude each other.")
    if kill_every and not (start or broker_command):
        raise click.UsageError("--kill-every needs --start or --broker-command.")
    if not options["plain"] + options["txn"] + options["transform"]:
        raise click.UsageError("Nothing to do: ask for clients with --plain, --txn or --transform.")
    from barnabas.verify.run import CannotRun, Run, Settings

    with _broker(session, start, data_dir, broker_command) as broker:
        settings = Settings(
            bootstrap=broker.bootstrap if broker else session.bootstrap,
            timeout_ms=session.timeout_ms,
            security=broker.security if broker else session.security,
            kill_every_s=kill_every,
            **options,
        )
        try:
            if broker is None:
                _await_cluster(session)
            else:
                broker.check_address()
                broker.start()
            run = Run(settings, None if history is None else Path(history), broker)
            if on_terminal():
                click.echo(
                    f"{settings.seconds:g} s of work, then about {_AFTER_WORK_S} s to read everything back", err=True
                )
            began_s = time.monotonic()
            with shown(lambda: _measure(run, began_s)):
                verdict = run()
        except (BrokerFailed, CannotRun) as error:
            raise Failure(str(error)) from None
    _report(session, verdict, history, run.interrupted_s)


def _await_cluster(session: Session) -> None:
    """Wait for the cluster as every command does.

    Raises:
        KafkaError: it does not answer.
    """
    with session.admin() as admin:
        admin.cluster.retry(admin.cluster.nodes)


@contextlib.contextmanager
def _broker(session: Session, start: bool, data_dir: str | None, command: str | None) -> Iterator[LocalBroker | None]:
    if not start and not command:
        yield None
        return
    with contextlib.ExitStack() as stack:
        folder = Path(data_dir or stack.enter_context(_kept_on_failure()))
        folder.mkdir(parents=True, exist_ok=True)
        bootstrap = session.bootstrap if command else f"127.0.0.1:{stack.enter_context(_free_port())}"
        words = _words(command) if command else _own_command(folder, bootstrap)
        broker = LocalBroker(words, bootstrap, folder / "broker.log", session.security if command else None)
        # The broker has a process group of its own: it would outlive this process.
        stack.enter_context(ends_cleanly())
        stack.callback(broker.stop)
        yield broker


@contextlib.contextmanager
def _kept_on_failure() -> Iterator[str]:
    """Yield a temporary folder; keep it after a Failure, whose message names the broker's log in it."""
    folder = tempfile.mkdtemp(prefix="barnabas-verify-")
    try:
        yield folder
    except Failure:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise click.BadParameter(f"{error}: {command}", param_hint="--broker-command") from None


def _own_command(folder: Path, bootstrap: str) -> list[str]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    command = [
        sys.executable,
        "-m",
        "barnabas.main",
        "start",
        "--data-dir",
        str(folder / "data"),
        "--listen",
        bootstrap,
    ]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    return command


@contextlib.contextmanager
def _free_port() -> Iterator[int]:
    """Yield a port and keep it while the broker is down between a kill and the next start.

    The socket that holds it does not listen; the broker can, because it reuses addresses.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def _measure(run: Run, began_s: float) -> Measured:
    """Return how far the run is; called by the thread that draws."""
    now = run.progress()
    text = (
        f"{time.monotonic() - began_s:3.0f} s  {now.phase}  {now.ok:,} ok  {now.fail:,} aborted  {now.info:,} unknown"
    )
    return Measured(text + (f"  {counted(now.kills, 'kill')}" if now.kills else ""), now.seconds, run.settings.seconds)


def _report(session: Session, verdict: Verdict, history: str | None, interrupted_s: float | None = None) -> None:
    """Print what was found: the numbers, what Kafka permits, what contradicts Kafka's promises, and the verdict.

    Args:
        interrupted_s: after how many seconds of work Ctrl-C came; None if it did not.

    Raises:
        Quiet: there are anomalies.
        Exit: there are none, and Ctrl-C ended the work early.
    """
    if session.output.is_json:
        early = {} if interrupted_s is None else {"interrupted_after_seconds": round(interrupted_s, 1)}
        session.output.show(verdict.as_json() | early)
    else:
        session.output.show(None, *_numbers(verdict))
        click.echo()
        _show_anomalies(session, verdict)
        when = "" if interrupted_s is None else f", interrupted after {interrupted_s:.1f} s"
        click.echo(_sentence(verdict, when, history))
    if not verdict.valid:
        raise Quiet
    if interrupted_s is not None:
        raise click.exceptions.Exit(_INTERRUPTED)


def _sentence(verdict: Verdict, early: str, history: str | None) -> str:
    if verdict.valid:
        return f"valid: no anomaly{early}"
    where = f"; `barnabas verify --check {history}` checks it again" if history else ""
    count = sum(verdict.counts().values())
    return f"invalid: {count} {'anomaly' if count == 1 else 'anomalies'}{early}{where}"


def _show_anomalies(session: Session, verdict: Verdict) -> None:
    if verdict.valid:
        return
    session.output.show(None, Table(["ANOMALY", "COUNT"], list(verdict.counts().items())))
    click.echo()
    for anomaly in verdict.examples(_SHOWN):
        key = "" if anomaly.key is None else f" in key {anomaly.key}"
        click.echo(f"{anomaly.name}{key}: {anomaly.message}")
        for op in anomaly.ops:
            click.echo(f"    {op}")
    click.echo()


def _numbers(verdict: Verdict) -> Iterator[Table]:
    """Yield the tables of a run's numbers; the last one is of what Kafka permits, if there is any."""
    numbers = verdict.statistics
    names = ("seconds", "acknowledged", "read", "operations_per_second", "kills", "longest_standstill_seconds")
    columns = [name.upper().replace("_", "-") for name in names]
    yield Table(columns, [[numbers[name] for name in names]], vertical=True)
    outcomes = numbers["operations"]
    rows = [(f, *(counts.get(each, 0) for each in ("ok", "fail", "info"))) for f, counts in outcomes.items()]
    yield Table(["OPERATION", "OK", "FAIL", "INFO"], rows)
    if permitted := verdict.allowed_counts():
        why = [(name, count, _INTERLEAVED if name in ALLOWED else _REBALANCED) for name, count in permitted.items()]
        yield Table(["PERMITTED-BY-KAFKA", "COUNT", "WHY"], why, below=("WHY",))

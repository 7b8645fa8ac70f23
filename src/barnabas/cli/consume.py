"""`barnabas consume`: records of topics to standard output.

Without a group the command assigns the partitions itself and commits nothing. With `-g` the group's coordinator assigns them, and
the command commits what it printed, every few seconds and at the end, also after Ctrl-C and SIGTERM. With `--share` it is a member of a
share group, and acknowledges each record (`share_run`).
"""

from __future__ import annotations

import contextlib
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from barnabas.cli.isolation import ISOLATION_LEVELS, isolation_option
from barnabas.cli.offset_grammar import END, START, Range, parse_offsets
from barnabas.cli.progress import on_terminal, output_is_a_file, shown
from barnabas.cli.serdes import Serdes, serdes_of, serdes_options
from barnabas.cli.session import Session, complete_topics, session_options_of_consume
from barnabas.cli.spans import partition_counts, spans_of
from barnabas.cli.wording import as_typed, counted
from barnabas.client.admin import Admin
from barnabas.protocol.errors import KafkaError
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.cli.consumer_run import ConsumerRun
    from barnabas.cli.record_printer import Printer

_ACKS = ("accept", "release", "reject", "ask")
_NOT_SHARED = {
    "offsets": "-o",
    "from_beginning": "--from-beginning",
    "partitions": "-p",
    "exit_at_end": "-e",
    "group": "-g",
    "isolation_level": "--isolation-level",
    "filters": "--filter",
}
"""Options that say where a consumer reads; of a share group the broker says it."""
_FULL_QUEUE_PAUSE = "fetch.queue.backoff.ms"
_FULL_QUEUE_PAUSE_MS = 10
"""How long the library fetches nothing when its queue of 100,000 records is full. They are printed in 0.1 s, and its default is 1 s."""
FORMATS = """\b
Formats (-f), kcat's letters and rpk's:
  %t topic   %p partition   %o offset   %e leader epoch
  %k key   %s or %v value   %T or %d timestamp (ms)
  %h headers   %H how many   %K %S bytes of key and value
  %R bytes of the value as 4 bytes   %T{iso}
  %k{hex} %v{base64} encoded   \\n \\t \\xHH   %% percent
  json one object per line
  decoded  json with fields for the records of internal
  topics; the default of those topics

\b
Offsets (-o):
  start end 47      the start, the end, this offset
  +2 -1             2 after the start, 1 before the end
  5:7 :end 47:end   ranges; the end is not included
  @1733000000000 @2026-11-21 @-1h @-2h:-1h   by time
  beginning -5 s@ms e@ms   kcat's spellings"""


@click.command(epilog=FORMATS)
@click.argument("topics", nargs=-1, metavar="TOPIC…", shell_complete=complete_topics)
@click.option("--topic", "-t", "more", multiple=True, hidden=True)
@click.option(
    "-o",
    "--offset",
    "offsets",
    multiple=True,
    metavar="OFFSET",
    help="Where to begin, or a range; with -g only where nothing is committed.  [default: start]",
)
@click.option(
    "-n", "--num", "--max-messages", "-c", "count", type=click.IntRange(min=1), help="Stop after this many records."
)
@click.option(
    "-p", "--partitions", "--partition", "partitions", multiple=True, metavar="N,…", help="Only these partitions."
)
@click.option("-g", "--group", metavar="GROUP", help="Read as a member of a group, and commit.")
@click.option(
    "--share", metavar="GROUP", help="Read as a member of a share group, and acknowledge each record (see --ack)."
)
@click.option(
    "--ack",
    type=click.Choice(_ACKS),
    help="With --share: what becomes of a printed record; ask says it of each.  [default: accept]",
)
@click.option("-f", "--format", "template", metavar="FORMAT", help="How to print a record.  [default: '%v\\n']")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FILTER",
    help="Only records with key=K, header=NAME[:VALUE], value=PART or partition=N, or CEL: 'value.amount > 100'; repeat.",
)
@serdes_options
@click.option("-e", "--exit", "--exit-at-end", "exit_at_end", is_flag=True, help="Stop at the end of the partitions.")
@isolation_option
@click.option("--from-beginning", is_flag=True, hidden=True)
@click.option("-X", "extra", multiple=True, metavar="PROP=VALUE", help="A librdkafka setting; repeat.")
@session_options_of_consume
def consume(
    session: Session,
    topics: tuple[str, ...],
    more: tuple[str, ...],
    offsets: tuple[str, ...],
    count: int | None,
    partitions: tuple[str, ...],
    group: str | None,
    share: str | None,
    ack: str | None,
    template: str | None,
    filters: tuple[str, ...],
    formats: tuple[str, ...],
    registry: str | None,
    registry_config: str | None,
    exit_at_end: bool,
    isolation_level: str,
    from_beginning: bool,
    extra: tuple[str, ...],
) -> None:
    """Print the records of TOPICS.

    \b
    barnabas consume orders -e -f '%p %o %k %v\\n'
    barnabas consume orders -o @-1h -f json
    """
    names = list(dict.fromkeys([*topics, *more]))
    if not names:
        raise click.UsageError("Missing argument 'TOPIC…'.")
    if offsets and from_beginning:
        raise click.UsageError("--from-beginning and --offset contradict each other.")
    try:
        wanted = parse_offsets(offsets, time.time_ns() // 1_000_000)
        chosen = _numbers(partitions)
        serdes = serdes_of(formats, registry, registry_config)
        show = _printer(session, template, names, serdes)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if share is not None:
        _read_share(session, names, extra, show, share, count, ack or "accept")
        return
    if group is not None and chosen:
        raise click.UsageError("A group's coordinator chooses the partitions: leave out --partitions.")
    if group == "":
        raise click.UsageError("The group name is empty: --group GROUP.")
    if ack is not None:
        raise click.UsageError("--ack needs --share.")
    settings: dict[str, Any] = {
        "isolation.level": isolation_level,
        "enable.partition.eof": True,
        "enable.auto.offset.store": False,
    }
    if _FULL_QUEUE_PAUSE not in session.properties:
        settings[_FULL_QUEUE_PAUSE] = _FULL_QUEUE_PAUSE_MS
    if group is None:
        # The library requires a group id even if it joins no group.
        settings |= {"group.id": "barnabas-consume", "enable.auto.commit": False, "auto.offset.reset": "error"}
    else:
        settings |= {"group.id": group, "auto.offset.reset": _reset_policy(wanted, bool(offsets))}
    # Ask first, with our own client: its errors for a missing broker or topic are clear.
    bounds = {}
    with session.admin() as admin:
        if group is None:
            isolation = ISOLATION_LEVELS[isolation_level]
            bounds = spans_of(admin, names, chosen, wanted, isolation)
        else:
            partition_counts(admin, names)
            if (offsets or from_beginning) and on_terminal():
                _note_committed(admin, group, names)
    with import_module("barnabas.cli.consumer_run").opened(session, extra, settings) as run:
        if group is None:
            run.assign(bounds)
        else:
            run.subscribe(names, group)
        # Where records go to a terminal, or through a pipe to one, a line of progress would lie between them.
        ends = exit_at_end or count is not None or wanted.end is not None
        with shown(run.progress(), wanted=ends and output_is_a_file()):
            _read(run, show, count, exit_at_end, commit=group is not None, filters=filters, serdes=serdes)


def _read(
    run: ConsumerRun,
    show: Printer,
    count: int | None,
    exit_at_end: bool,
    *,
    commit: bool,
    filters: tuple[str, ...],
    serdes: Serdes,
) -> None:
    if not filters:
        run.read(show, count, exit_at_end, commit=commit)
        return
    source = import_module("barnabas.cli.serialized").opened_source(serdes) if serdes else None
    kept = import_module("barnabas.cli.consumed_filter").ConsumedFilter(filters, source)
    try:
        run.read(show, count, exit_at_end, commit=commit, passing=kept.passing)
    finally:
        if kept.unjudged:
            click.echo(f"{counted(kept.unjudged, 'record')} could not be filtered: {kept.why}", err=True)


def _printer(session: Session, template: str | None, names: list[str], serdes: Serdes) -> Printer:
    """Return the printer of a batch; if it decodes, the command says at its end what it could not decode.

    Raises:
        ValueError: the format is not valid.
    """
    # Completion does without the library; and if it is missing, that is said before a broker is asked.
    from barnabas.cli import internal_records, record_printer

    is_internal = internal_records.are_decoded(names) and not session.output.is_json
    if template == "decoded" or (template is None and is_internal):
        return internal_records.decoded_lines
    template = ("json" if session.output.is_json else "%v\\n") if template is None else template
    show = record_printer.printer(template)
    if not serdes:
        return show
    serialized = import_module("barnabas.cli.serialized")
    decoding = serialized.Decoding(serdes, serialized.opened_source(serdes))
    click.get_current_context().call_on_close(decoding.report)
    printing: Printer = decoding.json_lines if template == "json" else decoding.before(show)
    return printing


def _read_share(
    session: Session, names: list[str], extra: tuple[str, ...], show: Printer, group: str, count: int | None, ack: str
) -> None:
    context = click.get_current_context()
    for name, option in _NOT_SHARED.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"The broker chooses what a member of a share group reads: leave out {option}.")
    if not group:
        raise click.UsageError("The group name is empty: --share GROUP.")
    with session.admin() as admin:
        partition_counts(admin, names)
    with import_module("barnabas.cli.share_run").opened(session, extra, group) as run:
        run.read(names, show, count, ack)


def _numbers(texts: tuple[str, ...]) -> list[int]:
    try:
        return sorted({int(number) for text in texts for number in text.split(",") if number})
    except ValueError:
        raise ValueError(f"'{printable(','.join(texts))}' is not a valid list of partitions: write -p 0,3") from None


def _reset_policy(wanted: Range, given: bool) -> str:
    if wanted.end is None and wanted.begin in (START, END):
        return "latest" if wanted.begin == END else "earliest"
    raise click.UsageError(
        "A group continues where it stopped: --group takes only -o start or -o end, for a new group."
    )


def _note_committed(admin: Admin, group: str, names: list[str]) -> None:
    """Tell a person that `-o` has no say where the group has committed."""
    with contextlib.suppress(KafkaError):  # this user may not see it
        committed = sum(each.topic in names for each in admin.list_group_offsets(group))
        if committed:
            where = counted(committed, "partition")
            click.echo(
                f"group {printable(group)} goes on where it committed, in {where}: -o counts only for partitions without a"
                f" commit (`barnabas group reset-offsets {as_typed(printable(group))} --all-topics --to-earliest --execute` begins"
                " again)",
                err=True,
            )

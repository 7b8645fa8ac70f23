"""`barnabas topic export`: the records of a topic as files, with a manifest."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from barnabas.cli.export_files import FORMATS, file_format
from barnabas.cli.export_folder import ExportFolder, opened_folder
from barnabas.cli.export_manifest import Manifest, Place
from barnabas.cli.failure import Failure
from barnabas.cli.isolation import ISOLATION_LEVELS, isolation_option
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.log_places import places_of
from barnabas.cli.progress import Measured, rate, shown
from barnabas.cli.record_filter import RECORD_FILTER_HELP, RECORD_FILTERS, parse_filter
from barnabas.cli.session import Session, complete_cuts, complete_topics, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicMetadata, TopicPartition, result
from barnabas.client.configs import ConfigSource
from barnabas.protocol.primitives import uuid_to_str

_COLUMNS = ("TOPIC", "FOLDER", "FILES", "RECORDS", "BYTES", "STATUS")
_MEBI = 1 << 20


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format", "format_name", type=click.Choice(sorted(FORMATS)), default="jsonl", show_default=True,
    help="JSON, a line each, or Parquet.",
)  # fmt: skip
@click.option(
    "--from", "begin", default="start", show_default=True, metavar="CUT|TIME|OFFSET", shell_complete=complete_cuts,
    help="A cut, a time (-1h), or an offset or a range of them, as of `consume -o`.",
)  # fmt: skip
@click.option(
    "--to", "end", metavar="CUT|TIME|OFFSET", shell_complete=complete_cuts,
    help="Where to end; that offset is not included.  [default: where the log ends now]",
)  # fmt: skip
@click.option("-f", "--filter", "filters", multiple=True, metavar="NAME=VALUE", help=RECORD_FILTER_HELP)
@isolation_option
@click.option(
    "--file-mb", type=click.IntRange(min=1), default=256, show_default=True, help="End a file at this size; MiB."
)
@session_options
def export(
    session: Session,
    topic: str,
    folder: Path,
    format_name: str,
    begin: str,
    end: str | None,
    filters: tuple[str, ...],
    isolation_level: str,
    file_mb: int,
) -> None:
    """Write the records of a topic as files into a folder.

    The folder is new or empty. It has a manifest.json when all is there, with the checksum of each file. The same command continues an
    export that was interrupted, to the same end.

    \b
    barnabas topic export orders orders-export
    barnabas topic export orders today --from -24h --format parquet
    """
    chosen = parse_filter(filters, RECORD_FILTERS)
    made = file_format(format_name)
    # Before a broker is asked, so that a missing library is the first thing said.
    exporting = import_module("barnabas.cli.exporting")
    options = [("--from", begin), ("--to", end), *(("--filter", each) for each in sorted(filters))]
    options += [("--isolation-level", isolation_level), ("--format", format_name)]
    choice = " ".join(f"{option} {shlex.quote(text)}" for option, text in options if text is not None)
    with session.admin() as admin, ends_cleanly():
        source = result(admin.describe_topics([topic])[topic])
        new = Manifest(
            topic,
            uuid_to_str(source.topic_id),
            admin.describe_cluster().cluster_id or "",
            len(source.partitions),
            _settings(admin, topic),
            choice,
            format_name,
            made.columns,
            [],
        )
        isolation = ISOLATION_LEVELS[isolation_level]
        with opened_folder(folder) as opened:
            stored, is_finished = opened.found()
            manifest = new if stored is None else stored
            if stored is None:
                manifest.places = _places(admin, source, begin, end, isolation)
            _check_is_same(folder, manifest, new)
            if not is_finished:
                opened.remove_unfinished(manifest)
                _note_loss(admin, opened, manifest)
                work = exporting.Export(opened, manifest, made, chosen, file_mb * _MEBI)
                measure = _measure(lambda: work.records, lambda: work.size_bytes)
                with exporting.reader(session, isolation_level) as consumer, shown(measure):
                    work.run(consumer)
                opened.finish()
    status = "finished before" if is_finished else "exported"
    row = (topic, str(folder), len(manifest.files), manifest.records, manifest.size_bytes, status)
    session.output.table(_COLUMNS, [row], hidden_first=("BYTES", "FILES"))
    if is_finished:
        click.echo("nothing was written: name another folder for another export", err=True)


def _settings(admin: Admin, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return {
        each.name: each.value
        for each in result(admin.describe_configs([resource])[resource])
        if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG and each.value is not None
    }


def _places(admin: Admin, source: TopicMetadata, begin: str, end: str | None, isolation: int) -> list[Place]:
    found = places_of(admin, source, begin, end, isolation)
    return [Place(partition, *found[partition]) for partition in sorted(found)]


def _check_is_same(folder: Path, stored: Manifest, new: Manifest) -> None:
    """Check that a folder's export is the same as the new one.

    Raises:
        Failure: it began with another topic or other options.
    """
    if (stored.topic, stored.choice) != (new.topic, new.choice):
        raise Failure(
            f"the export in {folder} began as `barnabas topic export {stored.topic} {folder} {stored.choice}`",
            "give the same options, or another folder",
        )
    if stored.cluster_id != new.cluster_id:
        raise Failure(f"the export in {folder} is of another cluster, {stored.cluster_id}", "name another folder")
    if stored.topic_id != new.topic_id:
        raise Failure(
            f"topic {new.topic} was deleted and created again since the export in {folder} began", "name another folder"
        )


def _note_loss(admin: Admin, folder: ExportFolder, manifest: Manifest) -> None:
    """Note the offsets that were deleted before they were read, with a warning: the export goes on after them."""
    bounds = log_bounds(admin, [TopicPartition(manifest.topic, each.partition) for each in manifest.places])
    for place in manifest.places:
        where = TopicPartition(manifest.topic, place.partition)
        start = min(bounds[where][0] or 0, place.end)
        position = manifest.position(place)
        if position < start:
            click.echo(f"warning: partition {where}: offsets {position} to {start - 1} are deleted", err=True)
            place.deleted += start - position
        place.log_start = max(place.log_start, start)
    # Before the first record: a run that continues this one ends there too.
    folder.note(manifest)


def _measure(records: Callable[[], int], size_bytes: Callable[[], int]) -> Callable[[], Measured]:
    began_s = time.monotonic()
    before = size_bytes()
    return lambda: Measured(rate(records(), size_bytes() - before, time.monotonic() - began_s))

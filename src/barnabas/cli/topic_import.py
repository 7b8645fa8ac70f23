"""`barnabas topic import`: the records of an export into a topic, each of them once."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path

import click

from barnabas.cli.export_files import FileFormat, check_file, file_format
from barnabas.cli.export_folder import explained_disk, read_manifest
from barnabas.cli.export_manifest import Manifest
from barnabas.cli.failure import Failure
from barnabas.cli.import_progress import STATE_TOPIC, ImportProgress
from barnabas.cli.progress import Measured, rate, shown
from barnabas.cli.session import Session, complete_topics, parse_pairs, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import (
    Admin,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicMetadata,
    result,
)
from barnabas.client.cuts import is_valid_cut_name
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.printable import printable

_COLUMNS = ("NAME", "FOLDER", "TO", "RECORDS", "OF", "STATUS")
_TIMESTAMP_TYPE = "message.timestamp.type"


@click.command(name="import")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("topic", metavar="[TOPIC]", required=False, shell_complete=complete_topics)
@click.option(
    "--create", is_flag=True, help="Create the topic if it is absent, with the export's partitions and settings."
)
@click.option("-r", "--replication-factor", "--replicas", "replicas", type=click.IntRange(min=1), help="With --create.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE",
              help="With --create: another setting than the export's; repeat.")  # fmt: skip
@click.option("--name", help="The name of the import.  [default: of the export and TOPIC]")
@click.option("-d", "--dry-run", is_flag=True, help="Only check the files and the topic.")
@session_options
def import_(
    session: Session,
    folder: Path,
    topic: str | None,
    create: bool,
    replicas: int | None,
    configs: tuple[str, ...],
    name: str | None,
    dry_run: bool,
) -> None:
    """Send the records of an export to a topic. Each is sent once, however often this runs.

    TOPIC is the exported one if it is left out. All files are checked before the first record is sent. How far the import is, is noted in
    the topic __barnabas_imports, in the same transactions: the same command continues an import that was interrupted.

    \b
    barnabas topic import orders-export --create
    barnabas topic import orders-export orders-copy
    """
    if not create and (replicas is not None or configs):
        raise click.UsageError("-r and -c are for a topic that --create creates: add --create")
    changed = parse_pairs(configs, "--config")
    with explained_disk(folder), ends_cleanly():
        manifest = read_manifest(folder)
        target = topic or manifest.topic
        digest = manifest.digest()
        name = name or f"{manifest.topic}-{digest[:12]}-to-{target}"
        if not is_valid_cut_name(name):
            raise click.UsageError(
                f"'{printable(name)}' is not a valid name: use letters, digits, '.', '_' and '-' with --name"
            )
        made = file_format(manifest.file_format)
        importing = import_module("barnabas.cli.importing")
        with session.admin() as admin:
            found = _target(admin, target, manifest, may_be_absent=create)
            _check(folder, manifest, made)
            status = "would be sent"
            if not dry_run:
                found = found or _created(admin, target, manifest, replicas or -1, changed)
                _warn_of_times(admin, target)
                import_module("barnabas.cli.sending_once").create_state_topic(admin, STATE_TOPIC)
                new = ImportProgress(name, digest, target, uuid_to_str(found.topic_id), manifest.records)
                work = importing.Import(folder, manifest, made, new)
                began_s = time.monotonic()

                def measure() -> Measured:
                    done = work.progress.sent
                    text = rate(done - work.sent_before, work.size_bytes, time.monotonic() - began_s)
                    return Measured(text, done, manifest.records)

                with shown(measure):
                    work.run(session)
                status = "finished before" if work.was_finished else "sent"
    records = manifest.records if dry_run else work.progress.sent
    row = (name, str(folder), target, records, manifest.records, status)
    session.output.table(_COLUMNS, [row], hidden_first=("NAME",))
    if not dry_run and work.without_time:
        click.echo(
            f"warning: {work.without_time} records have the timestamp 0, which librdkafka replaces by the time of the import",
            err=True,
        )
    if status == "finished before":
        click.echo("nothing was sent: --name begins another import", err=True)


def _target(admin: Admin, name: str, manifest: Manifest, *, may_be_absent: bool) -> TopicMetadata | None:
    """Return the topic; None if it is absent and may be.

    Raises:
        Failure: it is absent, or has too few partitions.
    """
    found = admin.describe_topics([name])[name]
    if isinstance(found, KafkaError) and found.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        if may_be_absent:
            return None
        raise Failure(
            f"topic {name} does not exist",
            f"--create creates it with {manifest.partitions} partitions and the settings of the export",
        )
    target = result(found)
    if len(target.partitions) < manifest.partitions:
        raise Failure(
            f"topic {name} has fewer partitions ({len(target.partitions)}) than the export ({manifest.partitions})",
            f"`barnabas topic alter {name} -p {manifest.partitions}` adds them",
        )
    return target


def _created(admin: Admin, name: str, manifest: Manifest, replicas: int, changed: dict[str, str]) -> TopicMetadata:
    settings = {**manifest.settings, **changed}
    if settings.get(_TIMESTAMP_TYPE) == "LogAppendTime" and _TIMESTAMP_TYPE not in changed:
        del settings[_TIMESTAMP_TYPE]
        click.echo(
            f"{_TIMESTAMP_TYPE}=LogAppendTime is not set, so that the records keep their times:"
            f" `barnabas topic alter {name} -c {_TIMESTAMP_TYPE}=LogAppendTime` sets it",
            err=True,
        )
    wanted = NewTopic(name, manifest.partitions, replicas, settings)
    admin.cluster.retry(lambda: admin.create_if_absent(wanted))
    return result(admin.describe_topics([name])[name])


def _warn_of_times(admin: Admin, name: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, name)
    (entry,) = result(admin.describe_configs([resource], names=[_TIMESTAMP_TYPE])[resource])
    if entry.value == "LogAppendTime":
        click.echo(f"warning: topic {name} sets its own times ({_TIMESTAMP_TYPE}=LogAppendTime)", err=True)


def _check(folder: Path, manifest: Manifest, made: FileFormat) -> None:
    """Check each file.

    Raises:
        Failure: a file is gone, or was changed.
    """
    read = 0

    def progress(count: int) -> None:
        nonlocal read
        read += count

    began_s = time.monotonic()
    total = manifest.size_bytes

    def measure() -> Measured:
        speed = read / 1_000_000 / max(time.monotonic() - began_s, 0.001)
        return Measured(f"checking the files  {speed:,.1f} MB/s", read, total)

    with shown(measure):
        for each in manifest.files:
            check_file(folder, each, made, progress)

"""`barnabas schemas check`: whether a file may be the next version of a subject; nothing is registered."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.failure import Failure, Failures
from barnabas.cli.registry_options import registry_options
from barnabas.cli.schema_files import schema_file_options, schema_in
from barnabas.schemas.errors import SchemaNotFound
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects
from barnabas.words.printable import printable


@click.command()
@click.argument("subject", metavar="SUBJECT")
@schema_file_options
@registry_options
def check(settings: RegistrySettings, subject: str, file: Path, kind: str | None, references: tuple[str, ...]) -> None:
    """Check whether the schema in FILE is compatible with a subject; the exit code is 1 if it is not.

    \b
    barnabas schemas check orders-value order.avsc -r http://HOST:8081
    """
    schema = schema_in(file, kind, references)
    subjects = Subjects(settings)
    problems = subjects.problems(subject, schema)
    if problems:
        raise Failures([Failure(f"incompatible with subject {printable(subject)}: {each}") for each in problems])
    try:
        versions = subjects.versions(subject)
    except SchemaNotFound:
        click.echo(f"compatible: subject {printable(subject)} does not exist yet")
    else:
        latest = f"version {max(versions)} is the latest" if versions else "it has no versions"
        click.echo(f"compatible with subject {printable(subject)}, of which {latest}")

"""`barnabas schemas put`: make a file the next version of a subject."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.output import Output
from barnabas.cli.output_options import output_options
from barnabas.cli.registry_options import registry_options
from barnabas.cli.schema_files import schema_file_options, schema_in
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects


@click.command()
@click.argument("subject", metavar="SUBJECT")
@schema_file_options
@registry_options
@output_options
def put(
    settings: RegistrySettings, output: Output, subject: str, file: Path, kind: str | None, references: tuple[str, ...]
) -> None:
    """Register the schema in FILE as the next version of a subject. A schema that the subject has stays as it is.

    \b
    barnabas schemas put orders-value order.avsc --registry http://HOST:8081
    barnabas schemas put orders-value order.proto --reference money.proto=money:1
    """
    schema = schema_in(file, kind, references)
    found = Subjects(settings).put(subject, schema)
    status = "registered" if found.is_new else "unchanged"
    output.table(("SUBJECT", "VERSION", "ID", "STATUS"), [(subject, found.version, found.schema_id, status)])

"""`barnabas schemas get`: the text of a schema, as the registry stores it."""

from __future__ import annotations

import sys

import click

from barnabas.cli.output import printable_json
from barnabas.cli.registry_options import registry_options
from barnabas.cli.schema_files import version_of
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects


@click.command()
@click.argument("subject", metavar="[SUBJECT]", required=False)
@click.argument("version", metavar="[VERSION]", required=False, callback=version_of)
@click.option("--id", "schema_id", metavar="NUMBER", type=click.IntRange(min=1), help="The schema with this id.")
@registry_options
def get(settings: RegistrySettings, subject: str | None, version: int | str | None, schema_id: int | None) -> None:
    """Print the text of a schema: the latest of a subject, another VERSION, or that with an id.

    \b
    barnabas schemas get orders-value 2 -r http://HOST:8081 > order.avsc
    barnabas schemas get --id 17 -r http://HOST:8081
    """
    if (subject is None) == (schema_id is None):
        raise click.UsageError("Give a subject, or --id NUMBER.")
    subjects = Subjects(settings)
    if schema_id is not None:
        text = subjects.schema(schema_id).text
    else:
        assert subject is not None, "one of both is given"
        text = subjects.version(subject, version or "latest").schema.text
    click.echo(printable_json(text.expandtabs(4)) if sys.stdout.isatty() else text)

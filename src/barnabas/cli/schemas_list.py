"""`barnabas schemas list`: the subjects of a registry. Three requests for each, eight subjects at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import click

from barnabas.cli.output import Found, Output, found_rows
from barnabas.cli.output_options import output_options
from barnabas.cli.registry_options import registry_options
from barnabas.schemas.errors import SchemaNotFound
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects, SubjectSummary

_AT_ONCE = 8


@click.command(name="list")
@click.argument("prefix", metavar="[PREFIX]", default="")
@registry_options
@output_options
def list_(settings: RegistrySettings, output: Output, prefix: str) -> None:
    """List subjects: type, versions, the id of the latest schema, and the compatibility level that counts.

    PREFIX shows only the subjects whose names begin with it.

    \b
    barnabas schemas list orders -r http://HOST:8081
    """
    output.show_found(listed_subjects(Subjects(settings), prefix))


def listed_subjects(subjects: Subjects, prefix: str = "") -> Found:
    """Return subjects, a row each.

    Raises:
        RegistryError: the registry does not serve a request.
    """

    def summary(name: str) -> SubjectSummary | None:
        try:
            return subjects.summary(name)
        except SchemaNotFound:
            return None  # Somebody has deleted it meanwhile.

    names = sorted(name for name in subjects.names() if name.startswith(prefix))
    with ThreadPoolExecutor(_AT_ONCE) as executor:
        rows = [each for each in executor.map(summary, names) if each is not None]
    return found_rows(
        ("SUBJECT", "TYPE", "VERSIONS", "LATEST-ID", "COMPATIBILITY"),
        rows,
        hidden_first=("COMPATIBILITY", "LATEST-ID", "TYPE"),
    )

"""`barnabas schemas`: schemas of a registry, in a folder that takes its place.

The command needs no cluster. A kill leaves a folder that can be read, and the same command goes on from there.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from barnabas.cli.failure import Failure
from barnabas.client.properties import read_properties
from barnabas.schemas.errors import SchemaError, SchemaNotFound
from barnabas.schemas.pull import pull as copy
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.settings import RegistrySettings
from barnabas.words.nearest import did_you_mean


@click.group()
def schemas() -> None:
    """Schemas of a registry: pull them into a folder."""


@schemas.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--registry", metavar="URL,…", help="Addresses of the registry, for example http://localhost:8081.")
@click.option(
    "--registry-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A file of the registry's options, its credentials among them: key=value, a line each.",
)
@click.option("-s", "--subject", "subjects", metavar="NAME", multiple=True, help="Only this subject; repeat.")
@click.option("--id", "ids", metavar="NUMBER", type=click.IntRange(min=1), multiple=True, help="A schema; repeat.")
def pull(
    folder: Path, registry: str | None, registry_config: str | None, subjects: tuple[str, ...], ids: tuple[int, ...]
) -> None:
    """Copy subjects of a schema registry into FOLDER.

    Each comes with all its versions and with the schemas that they refer to. What is in the folder stays.

    \b
    barnabas schemas pull schemas --registry http://HOST:8081
    """
    try:
        options = read_properties(registry_config) if registry_config else {}
    except ValueError as error:
        raise Failure(str(error), "write key=value, a line each") from None
    try:
        source = SchemaRegistry(RegistrySettings.of(options if registry is None else {**options, "url": registry}))
        found = copy(source, folder, subjects=subjects or None, ids=ids)
    except SchemaNotFound as error:
        raise Failure(str(error), _nearest(source, subjects)) from None
    except SchemaError as error:
        raise Failure(str(error)) from None
    click.echo(f"{folder} has {len(found)} schemas of {source.settings.urls[0]}")


def _nearest(source: SchemaRegistry, subjects: tuple[str, ...]) -> str | None:
    """Return the subject that was probably meant; None if there is none, or the registry does not list subjects."""
    with suppress(SchemaError):
        existing = source.subjects()
        found = (did_you_mean(each, existing) for each in subjects if each not in existing)
        return next(filter(None, found), "").removeprefix("; ") or None
    return None

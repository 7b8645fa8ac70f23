"""`barnabas schemas pull`: schemas of a registry, in a folder that takes its place.

A kill leaves a folder that can be read, and the same command goes on from there.
"""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.registry_options import registry_options
from barnabas.schemas.pull import pull as copy
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.settings import RegistrySettings


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@registry_options
@click.option("-s", "--subject", "subjects", metavar="NAME", multiple=True, help="Only this subject; repeat.")
@click.option("--id", "ids", metavar="NUMBER", type=click.IntRange(min=1), multiple=True, help="A schema; repeat.")
def pull(settings: RegistrySettings, folder: Path, subjects: tuple[str, ...], ids: tuple[int, ...]) -> None:
    """Copy subjects of a schema registry into FOLDER.

    Each comes with all its versions and with the schemas that they refer to. What is in the folder stays.

    \b
    barnabas schemas pull schemas --registry http://HOST:8081
    """
    found = copy(SchemaRegistry(settings), folder, subjects=subjects or None, ids=ids)
    click.echo(f"{folder} has {len(found)} schemas of {settings.urls[0]}")

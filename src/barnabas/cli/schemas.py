"""`barnabas schemas`: the schemas of a registry, and a folder that takes its place. No command needs a cluster."""

from __future__ import annotations

import click

from barnabas.cli.schemas_check import check
from barnabas.cli.schemas_delete import delete
from barnabas.cli.schemas_get import get
from barnabas.cli.schemas_list import list_
from barnabas.cli.schemas_pull import pull
from barnabas.cli.schemas_put import put


@click.group()
def schemas() -> None:
    """Schemas of a registry: list, get, put, check, delete, pull."""


for _command in (list_, get, put, check, delete, pull):
    schemas.add_command(_command)

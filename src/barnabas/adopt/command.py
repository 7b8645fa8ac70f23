"""`barnabas adopt`: a live cluster of Apache Kafka becomes one of barnabas."""

from __future__ import annotations

import click

from barnabas.adopt.check_command import check
from barnabas.adopt.status_command import status

__all__ = ["adopt"]


@click.group()
def adopt() -> None:
    """Take over a live cluster of Apache Kafka, a node at a time."""


adopt.add_command(check)
adopt.add_command(status)

"""`barnabas adopt`: a live cluster of Apache Kafka becomes one of barnabas."""

from __future__ import annotations

import click

from barnabas.adopt.change_command import back, next_
from barnabas.adopt.check_command import check
from barnabas.adopt.status_command import status

__all__ = ["adopt"]


@click.group()
def adopt() -> None:
    """Take over a live cluster of Apache Kafka, a node at a time."""


adopt.add_command(check)
adopt.add_command(status)
adopt.add_command(next_)
adopt.add_command(back)

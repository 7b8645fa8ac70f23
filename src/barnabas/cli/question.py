"""A question before a command changes something, and the line that was typed."""

from __future__ import annotations

import sys

import click


def typed_answer(question: str) -> str:
    """Ask on standard error, and return the line that standard input answers; "" at its end."""
    click.echo(f"{question}: ", err=True, nl=False)
    answer = sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        click.echo(err=True)  # A terminal shows what was typed, and its end of line.
    return answer

"""Completion of the commands that are parsed by argparse: what click needs to know of them.

`barnabas start` and `barnabas storage` do without click, which would double the time of a start. Completion may take that time.
"""

from __future__ import annotations

import argparse
from typing import Any

import click

from barnabas.settings_table import setting_names

_FILES = ("FILE", "DIR")


def as_click(name: str, parser: argparse.ArgumentParser) -> click.Command:
    """Return a command with the options of a parser and the commands within it; it cannot be run."""
    parameters: list[click.Parameter] = []
    commands: dict[str, click.Command] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = {each: as_click(each, within) for each, within in action.choices.items()}
        elif not action.option_strings:
            parameters.append(click.Argument([action.dest], required=False, type=_type(action)))
        elif action.dest != "help" and action.help != argparse.SUPPRESS:
            parameters.append(_option(action))
    context = {"help_option_names": ["-h", "--help"]}
    if commands:
        return click.Group(name, commands=commands, params=parameters, context_settings=context)
    return click.Command(name, params=parameters, context_settings=context)


def _type(action: argparse.Action) -> click.ParamType[Any] | None:
    if action.choices is not None:
        return click.Choice([str(choice) for choice in action.choices])
    return click.Path() if action.metavar in _FILES else None


def _option(action: argparse.Action) -> click.Option:
    # It may be given again: click does not offer an option a second time otherwise.
    return click.Option(
        action.option_strings,
        is_flag=action.nargs == 0,
        multiple=action.nargs != 0,
        type=_type(action),
        help=action.help,
        shell_complete=_complete_setting if "--set" in action.option_strings else None,
    )


def _complete_setting(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [f"{name}=" for name in setting_names("broker") if name.startswith(incomplete)]

"""The options that name a schema registry: `-r URL`, and a file of options for credentials and TLS.

A command prints each error of a registry as one line, with the subject that the user probably meant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.failure import Failure, explained
from barnabas.client.properties import read_properties
from barnabas.schemas.errors import SchemaError, SchemaNotFound
from barnabas.schemas.settings import RegistrySettings
from barnabas.words.nearest import did_you_mean

if TYPE_CHECKING:
    from barnabas.schemas.subjects import Subjects

_url_option = click.option(
    "-r", "--registry", metavar="URL,…", help="Addresses of the registry, for example http://localhost:8081."
)
registry_config_option = click.option(
    "--registry-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A file of the registry's options, its credentials among them: key=value, a line each.",
)
"""Adds `--registry-config`; the command gets it as `registry_config`, a path or None."""


def registry_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a registry; the command gets them as `settings`, and its errors are one line each."""

    @_url_option
    @registry_config_option
    @functools.wraps(function)
    def command(registry: str | None, registry_config: str | None, **options: Any) -> None:
        with explained():
            with registry_failures():
                settings = settings_of(registry, registry_config)
            # `consume` and `produce` have such an option, too, and seldom need HTTP and TLS of the standard library.
            subjects: Subjects = import_module("barnabas.schemas.subjects").Subjects(settings)
            with registry_failures(subjects):
                function(settings=settings, **options)

    return command


def settings_of(registry: str | None, registry_config: str | None) -> RegistrySettings:
    """Return the settings of a registry; an address on the command line counts before that of the file.

    Raises:
        Failure: the file cannot be read.
        SchemaError: an option is not valid, or neither the command line nor the file names an address.
    """
    try:
        options = read_properties(registry_config) if registry_config else {}
    except ValueError as error:
        raise Failure(str(error), "write key=value, a line each") from None
    return RegistrySettings.of(options if registry is None else {**options, "url": registry})


@contextmanager
def registry_failures(subjects: Subjects | None = None) -> Iterator[None]:
    """Turn a registry's error into a failure.

    Args:
        subjects: of the registry, to find the subject that was probably meant.

    Raises:
        Failure: the registry gave an error.
    """
    try:
        yield
    except SchemaNotFound as error:
        raise Failure(str(error), None if subjects is None else _nearest(subjects, str(error))) from None
    except SchemaError as error:
        raise Failure(str(error)) from None


def _nearest(subjects: Subjects, message: str) -> str | None:
    """Return a hint with the subject that the user probably meant; None if the registry lists no subjects."""
    _, is_named, rest = message.partition(" subject ")
    name = rest.partition(" (")[0]
    if is_named and name:
        with suppress(SchemaError):
            existing = subjects.names()
            if name not in existing:
                return did_you_mean(name, existing).removeprefix("; ") or "`barnabas schemas list` shows which exist"
    return None

"""`--rewrite file.py:function`: a user's function that changes records."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import click

from barnabas.cli.failure import Failure
from barnabas.retries.record import Record
from barnabas.retries.replay import Change, place_of
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable


def load_rewrite(text: str, option: str = "--rewrite") -> Change:
    """Return the function that `file.py:function` names; what it raises becomes a failure that names the record.

    Args:
        option: that the text was given with.

    Raises:
        BadParameter: there is no such file or function.
        Failure: the file cannot be imported.
    """
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise click.BadParameter(f"'{printable(text)}' is not file.py:function", param_hint=option)
    spec = spec_from_file_location("barnabas_rewrite", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise click.BadParameter(f"there is no Python file {printable(path)}", param_hint=option)
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Failure(f"{path} cannot be imported: {_words(error)}", "mend it, and run the same command") from None
    function = getattr(module, name, None)
    if not callable(function):
        meant = did_you_mean(name, [each for each in vars(module) if not each.startswith("_")])
        raise click.BadParameter(f"{printable(path)} has no function {printable(name)}{meant}", param_hint=option)
    return _explained(name, function)


def _explained(name: str, function: Callable[[Record], object]) -> Change:
    def change(record: Record) -> Record | None:
        try:
            changed = function(record)
        except Exception as error:
            raise _failure(name, record, f"raised {_words(error)}") from None
        if changed is not None and not isinstance(changed, Record):
            raise _failure(name, record, f"returned a {type(changed).__name__}, not a Record or None")
        return changed

    return change


def _failure(name: str, record: Record, what: str) -> Failure:
    return Failure(f"{name} {what} for {place_of(record)}", "mend it, and run the same command: it goes on from there")


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

"""`barnabas schemas` against a registry with two subjects."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import Result

from barnabas.schemas.schema import Schema
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects
from tests.cli.test_commands import run
from tests.registry.asking import record

ORDER = json.dumps(record("a"), separators=(",", ":"))
SECOND = json.dumps(record("a", "b?"), separators=(",", ":"))
INCOMPATIBLE = json.dumps(record("a", "c"), separators=(",", ":"))
PROTO = 'syntax = "proto3";\n\nmessage Money {\n  int64 cents = 1;\n}\n'


def schemas(registry: str, *words: str, given: str = "") -> Result:
    """Run a command against a registry."""
    return run("schemas", *words, "-r", registry, given=given)


def filled(registry: str) -> Subjects:
    """Register two versions of `orders-value` (ids 1 and 2), and one of `users-value` (id 3)."""
    subjects = Subjects(RegistrySettings.of(registry))
    subjects.put("orders-value", Schema(ORDER))
    subjects.put("orders-value", Schema(SECOND))
    subjects.put("users-value", Schema("{}", "JSON"))
    return subjects


def written(folder: Path, text: str, name: str = "order.avsc") -> str:
    """Return the path of a file with a schema."""
    (folder / name).write_text(text)
    return str(folder / name)

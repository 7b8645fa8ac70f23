"""`barnabas schemas check`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.schemas_commands import INCOMPATIBLE, SECOND, filled, schemas, written


def test_compatible_or_why_not(barnabas_registry: str, tmp_path: Path) -> None:
    subjects = filled(barnabas_registry)
    good, bad = written(tmp_path, SECOND), written(tmp_path, INCOMPATIBLE, "bad.avsc")
    done = schemas(barnabas_registry, "check", "orders-value", good)
    assert (done.exit_code, done.output) == (
        0,
        "compatible with subject orders-value, of which version 2 is the latest\n",
    )
    done = schemas(barnabas_registry, "check", "orders-value", bad)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: incompatible with subject orders-value: it cannot read version 2: ")
    assert len(done.stderr.splitlines()) == 1
    done = schemas(barnabas_registry, "check", "absent", good)
    assert (done.exit_code, done.output) == (0, "compatible: subject absent does not exist yet\n")
    done = schemas(barnabas_registry, "check", "absent", written(tmp_path, "{"))
    assert (done.exit_code, "the schema is not valid" in done.stderr) == (1, True)
    assert subjects.versions("orders-value") == [1, 2]

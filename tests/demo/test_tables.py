"""Only what a finished batch has named is a row."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.demo.tables import committed_files, read_table


def write(folder: Path, name: str, number: int) -> str:
    pq.write_table(pa.table({"number": [number], "more": ["x"]}), folder / name)
    return json.dumps({"path": (folder / name).as_uri(), "action": "add"})


def test_committed_rows(tmp_path):
    folder = tmp_path / "a table"
    log = folder / "_spark_metadata"
    log.mkdir(parents=True)
    assert read_table(folder, ["number"]) is None
    entries = [write(folder, f"{number}.parquet", number) for number in range(4)]
    write(folder, "left-behind.parquet", 99)
    (log / "0").write_text(f"v1\n{entries[0]}")
    (log / ".1.tmp").write_text("half")
    assert [path.name for path in committed_files(folder)] == ["0.parquet"]
    (log / "1").write_text(f"v1\n{entries[1]}")
    (log / "2.compact").write_text("\n".join(["v1", *entries[:3]]))
    (log / "3").write_text(f"v1\n{entries[3]}")
    table = read_table(folder, ["number"])
    assert table is not None
    assert table.to_pydict() == {"number": [0, 1, 2, 3]}

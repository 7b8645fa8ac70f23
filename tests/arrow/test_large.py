"""Half a million real order lines summed by four readers, and a topic larger than the memory that reading it takes.

`tests/demo/test_online_retail.py` says where the file of the lines is looked for.
"""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys

import confluent_kafka
import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest

import barnabas
from tests.arrow.conftest import create
from tests.arrow.consumed import consumed
from tests.arrow.test_sql import answer
from tests.demo.test_online_retail import LINES, online_retail

PARTITIONS = 4
RECORD = b"x" * 1_000
PEAK_MB = (
    "import resource, sys, barnabas\n"
    "read = barnabas.read('large', bootstrap=sys.argv[1], to=int(sys.argv[2]))\n"
    "rows = sum(batch.num_rows for batch in read)\n"
    "print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
)

pytestmark = pytest.mark.long


@pytest.mark.skipif(online_retail() is None, reason="the online-retail file is not here; set BARNABAS_ONLINE_RETAIL")
def test_the_real_lines(servers):
    create(servers, "lines", PARTITIONS)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"})
    path = online_retail()
    assert path is not None
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
        quantity = head.index("Quantity")
        for number, row in enumerate(rows):
            producer.produce("lines", row[quantity], str(number), number % PARTITIONS)
            producer.poll(0)
            if number % 10_000 == 0:
                producer.flush()
    producer.flush()
    records = consumed(servers, "lines", PARTITIONS)
    wanted = (LINES, sum(int(each.value or b"0") for each in records), sum(int(each.key or b"0") for each in records))
    assert len(records) == LINES

    lines = barnabas.read("lines", bootstrap=servers, key="text", value="text", columns=["key", "value"])
    table = lines.table()
    assert (table.num_rows, *(pc.sum(table[name].cast("int64")).as_py() for name in ("value", "key"))) == wanted
    frame = pl.DataFrame(lines).select(pl.len(), *(pl.col(name).cast(pl.Int64).sum() for name in ("value", "key")))
    assert frame.row(0) == wanted
    sums = "SELECT count(*), sum(value::bigint), sum(key::bigint) FROM lines"
    assert duckdb.sql(sums).fetchall() == [wanted]
    assert answer(servers, sums) == [wanted]


def test_reading_ten_times_as_much_takes_no_more_memory(servers):
    create(servers, "large")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(600_000):
        producer.produce("large", RECORD)
        if number % 20_000 == 0:
            producer.flush()
    producer.flush()

    def peak_mb(records: int) -> int:
        program = [sys.executable, "-c", PEAK_MB, servers, str(records)]
        rows, peak = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
        assert int(rows) == records
        return int(peak)

    small, large = peak_mb(60_000), peak_mb(600_000)
    print(f"{small} MB for 60 MB, {large} MB for 600 MB")
    assert large < small + 60

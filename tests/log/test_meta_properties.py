"""Whose data directory this is."""

from __future__ import annotations

import pytest

from barnabas.log import meta_properties
from barnabas.log.meta_properties import InvalidMetaProperties, MetaProperties
from barnabas.simulation.disk import SimDisk

META = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 1, "9p2Wl1tXSSCgDZ1NvHvHkA")
KAFKAS = b"""#
#Sat Nov 21 09:00:00 UTC 2026
cluster.id=MkU3OEVBNTcwNTJENDM2Qg
directory.id=9p2Wl1tXSSCgDZ1NvHvHkA
node.id=1
version=1
"""


def test_reads_what_kafka_writes_and_writes_the_same_fields() -> None:
    assert MetaProperties.decode(KAFKAS) == META
    assert MetaProperties.decode(META.encode()) == META
    assert META.encode().splitlines()[1:] == KAFKAS.splitlines()[2:]


def test_round_trip_on_disk() -> None:
    disk = SimDisk()
    disk.mkdir("/d")
    assert meta_properties.read(disk, "/d") is None
    meta_properties.write(disk, "/d", META)
    disk.crash()
    assert meta_properties.read(disk, "/d") == META


def test_older_versions_and_escapes() -> None:
    assert MetaProperties.decode(b"version=0\nbroker.id=4\ncluster.id=a\\=b\\:c\n") == MetaProperties("a=b:c", 4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"version=2\nnode.id=1\ncluster.id=x",
        b"version=1\nnode.id=-1\ncluster.id=x",
        b"version=1\nnode.id=1\n",
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidMetaProperties):
        MetaProperties.decode(data)

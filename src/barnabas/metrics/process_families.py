"""The process: memory, processor, files, disk, garbage collection.

The names are those of Prometheus's client libraries, so that dashboards for any process show this one; `jvm_*` has no counterpart. A
family without a value, as outside Linux, has no sample.

Sources: proc(5); the conventions for process metrics of prometheus.io.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
from collections.abc import Iterator

from barnabas.metrics.exposition import Family, family, labels

__all__ = ["families"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/self/stat behind the command's name, counted from zero: state is the first.
_UTIME, _STIME, _START, _VSIZE, _RSS = 11, 12, 19, 20, 21


def families() -> Iterator[Family]:
    """Yield every family of the process."""
    yield from _stat()
    try:
        open_fds = len(os.listdir("/proc/self/fd")) - 1
    except OSError:
        pass
    else:
        yield family("process_open_fds", "gauge", "Open file descriptors.", [("", open_fds)])
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield family("process_max_fds", "gauge", "Limit of open file descriptors.", [("", limit)])
    yield from _disk()
    yield from _garbage()
    version = labels({"implementation": platform.python_implementation(), "version": platform.python_version()})
    yield family("python_info", "gauge", "The Python that runs this broker.", [(version, 1)])


def _stat() -> Iterator[Family]:
    try:
        with open("/proc/self/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        with open("/proc/stat", encoding="utf-8") as file:
            booted = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    except (OSError, StopIteration):
        return
    cpu_seconds = (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS
    yield family(
        "process_cpu_seconds_total", "counter", "Processor time, user and system, in seconds.", [("", cpu_seconds)]
    )
    yield family(
        "process_resident_memory_bytes", "gauge", "Resident memory in bytes.", [("", int(fields[_RSS]) * _PAGE)]
    )
    yield family("process_virtual_memory_bytes", "gauge", "Virtual memory in bytes.", [("", int(fields[_VSIZE]))])
    yield family(
        "process_start_time_seconds",
        "gauge",
        "When the process started, in seconds since the epoch.",
        [("", booted + int(fields[_START]) / _TICKS)],
    )


def _disk() -> Iterator[Family]:
    try:
        with open("/proc/self/io", encoding="utf-8") as file:
            io = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return
    for name, key, text in (
        ("read", "read_bytes", "Bytes that this process read from disks."),
        ("write", "write_bytes", "Bytes that this process wrote to disks."),
    ):
        yield family(f"kafka_server_kafkaserver_linux_disk_{name}_bytes", "gauge", text, [("", int(io[key]))])


def _garbage() -> Iterator[Family]:
    stats = gc.get_stats()
    for name, key, text in (
        ("python_gc_objects_collected_total", "collected", "Objects that the garbage collector freed."),
        (
            "python_gc_objects_uncollectable_total",
            "uncollectable",
            "Objects that the garbage collector could not free.",
        ),
        ("python_gc_collections_total", "collections", "Collections of each generation."),
    ):
        yield family(
            name,
            "counter",
            text,
            ((labels({"generation": generation}), stat[key]) for generation, stat in enumerate(stats)),
        )

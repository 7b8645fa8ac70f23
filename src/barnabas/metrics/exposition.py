"""The Prometheus text format, version 0.0.4: families of samples as text.

    # HELP name help
    # TYPE name counter
    name{topic="t",partition="0"} 12

Samples are text, not objects: a broker with ten thousand partitions has a hundred thousand samples, all made at each scrape on the
event loop, and a formatted line costs a fraction of a microsecond. The samples of a family stay together, as the format demands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from barnabas.turns import ELEMENT, TURN

__all__ = ["CONTENT_TYPE", "Family", "family", "family_in_pieces", "histogram", "labels", "number", "summary"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


# Labels as text without braces, and the value.
Sample = tuple[str, float]
Family = str


def labels(pairs: Mapping[str, object]) -> str:
    """Format labels, without braces; values are escaped."""
    return ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in pairs.items())


def number(value: float) -> str:
    """Format a value."""
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Family:
    """Format a family; empty if it has no samples.

    Args:
        kind: counter, gauge or untyped.
        text: the help, one sentence.
        samples: labels as text, possibly empty, and the value.
    """
    return "".join(family_in_pieces(name, kind, text, samples))


def family_in_pieces(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[Family]:
    """As `family`, in pieces, so that the loop may get a turn between two of them: for a sample of each partition."""
    left = iter(samples)
    head: tuple[str, ...] = (f"# HELP {name} {text}", f"# TYPE {name} {kind}")
    while lines := [
        f"{name}{{{tags}}} {number(value)}" if tags else f"{name} {number(value)}"
        for tags, value in islice(left, TURN // ELEMENT)
    ]:
        yield "\n".join((*head, *lines, ""))
        head = ()


def histogram(name: str, text: str, buckets: Iterable[tuple[float, int]], total: float) -> Family:
    """Format a histogram without labels.

    Args:
        buckets: upper bound of each, the last infinite, and the observations in this one alone.
        total: the sum of the observations.
    """
    lines, count = [], 0
    for bound, more in buckets:
        count += more
        lines.append(f'{name}_bucket{{le="{number(bound)}"}} {count}')
    lines += [f"{name}_sum {number(total)}", f"{name}_count {count}"]
    return "\n".join((f"# HELP {name} {text}", f"# TYPE {name} histogram", *lines, ""))


def summary(name: str, text: str, rows: Iterable[tuple[str, Iterable[tuple[float, float]], float, int]]) -> Family:
    """Format a family of summaries; empty if it has no rows.

    Args:
        rows: labels as text, not empty; quantiles with their values; sum; count.
    """
    lines = []
    for tags, quantiles, total, count in rows:
        lines += [f'{name}{{{tags},quantile="{quantile}"}} {number(value)}' for quantile, value in quantiles]
        lines += [f"{name}_sum{{{tags}}} {number(total)}", f"{name}_count{{{tags}}} {count}"]
    if not lines:
        return ""
    return "\n".join((f"# HELP {name} {text}", f"# TYPE {name} summary", *lines, ""))

"""`cordoned.log.dirs`: data directories that get no new replica (KIP-1066).

    cordoned.log.dirs=/disks/a,/disks/b     these, each one of log.dirs
    cordoned.log.dirs=*                     all of them

- The setting is static, or dynamic for one broker.
- A dynamic value may name a directory that the file has lost since. The other directories of the value stay cordoned.

Source: Kafka's `KafkaConfig.validateCordonedLogDirs`, `DynamicLogConfig`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from barnabas.metadata.config_schema import ConfigValue

__all__ = ["CORDONED", "cordoned_among", "why_not_cordoned"]

CORDONED = "cordoned.log.dirs"
ALL = "*"


def why_not_cordoned(value: ConfigValue, log_dirs: Sequence[str]) -> str:
    """Return Kafka's words about a value that is not allowed; empty if it is."""
    named = _named(value)
    if ALL in named:
        return "" if len(named) == 1 else f"When {CORDONED} is set to {ALL}, it must not contain other values"
    known = set(map(os.path.normpath, log_dirs))
    missing = [each for each in named if os.path.normpath(each) not in known]
    if missing:
        return (
            f"All entries in {CORDONED} must be present in log.dirs or log.dir. Missing entries : {', '.join(missing)}"
        )
    return ""


def cordoned_among(value: ConfigValue, log_dirs: Sequence[str]) -> frozenset[str]:
    """Return the directories of `log_dirs` that a value names."""
    named = _named(value)
    if ALL in named:
        return frozenset(log_dirs)
    wanted = set(map(os.path.normpath, named))
    return frozenset(each for each in log_dirs if os.path.normpath(each) in wanted)


def _named(value: ConfigValue) -> tuple[str, ...]:
    assert value is None or isinstance(value, tuple), value
    return value or ()

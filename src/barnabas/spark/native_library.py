"""The package barnabas-native: the loops over records in C, if it is installed.

Source and sink work without it, with the same results: numpy does the same, several times more slowly. The environment
variable `BARNABAS_NATIVE` decides, in each Python process of Spark: `no` does without the package, `yes` fails without
it. The choice is logged once in a process.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from types import ModuleType

from barnabas.spark.plain_errors import QueryError

__all__ = ["VARIABLE", "native_library"]

logger = logging.getLogger("barnabas.spark")

VARIABLE = "BARNABAS_NATIVE"
_INTERFACE = 1


@cache
def native_library() -> ModuleType | None:
    """Return the module, None if numpy does its work.

    Raises:
        QueryError: `BARNABAS_NATIVE` is `yes`, and the package is missing or of another version.
        ValueError: `BARNABAS_NATIVE` is neither `yes` nor `no`.
    """
    wish = os.environ.get(VARIABLE, "")
    if wish not in ("", "yes", "no"):
        raise ValueError(f"{VARIABLE} is '{wish}': set it to yes or no, or unset it")
    module, obstacle = (None, f"{VARIABLE} is no") if wish == "no" else _imported()
    if module is not None:
        logger.info("barnabas-native decodes and digests records")
        return module
    if wish == "yes":
        raise QueryError(f"{VARIABLE} is yes, and {obstacle}: install it from the folder native of barnabas's sources")
    logger.info("numpy decodes and digests records, more slowly than barnabas-native: %s", obstacle)
    return None


def _imported() -> tuple[ModuleType | None, str]:
    """Return the module if it can be used, and else why not."""
    try:
        import barnabas_native as module
    except ImportError:
        return None, "barnabas-native is not installed"
    if module.INTERFACE != _INTERFACE:
        return None, "the installed barnabas-native is of another version"
    return module, ""

"""How to install the packages of an extra, by their own names.

barnabas itself may have come from a clone or from a wheel, so that no command installs its extra everywhere.
"""

from __future__ import annotations

import re
import sys

__all__ = ["install_command"]


def install_command(extra: str = "spark") -> str:
    """Return a command that installs what an extra lists, for the interpreter that runs."""
    # 10 ms that only a missing package costs.
    from importlib.metadata import requires

    listed = [
        line.partition(";")[0].strip()
        for line in requires("barnabas") or []
        if re.search(rf"extra == .{extra}\b", line)
    ]
    return " ".join([sys.executable, "-m", "pip", "install", *(f'"{requirement}"' for requirement in listed)])

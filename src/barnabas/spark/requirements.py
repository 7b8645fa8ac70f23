"""How to install the packages that Spark needs: those of the extra `spark`, by their own names.

barnabas itself may have come from a clone or from a wheel, so that no command installs its extra everywhere.
"""

from __future__ import annotations

import re
import sys

__all__ = ["install_command"]


def install_command() -> str:
    """Return a command that installs what the extra `spark` lists, for the interpreter that runs."""
    # 10 ms that only a missing package costs.
    from importlib.metadata import requires

    extra = [
        line.partition(";")[0].strip() for line in requires("barnabas") or [] if re.search(r"extra == .spark", line)
    ]
    return " ".join([sys.executable, "-m", "pip", "install", *(f'"{requirement}"' for requirement in extra)])

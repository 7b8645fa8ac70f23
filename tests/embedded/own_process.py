"""Which threads some statements leave, in a process of their own: other brokers of this process begin and end threads at any time."""

from __future__ import annotations

import subprocess
import sys


def threads_after(statements: str) -> list[str]:
    """Run statements after `import barnabas`, and return the names of the threads that are there then and were not before."""
    program = (
        "import threading\nimport barnabas\nbefore = set(threading.enumerate())\n"
        f"{statements}\nprint('left', *(each.name for each in set(threading.enumerate()) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("left")]
    return line.split()[1:]

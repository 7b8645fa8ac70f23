"""`barnabas console` as a process of its own, on a free port."""

from __future__ import annotations

import re
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

READY_SECONDS = 60
STOP_SECONDS = 30


@contextmanager
def console(*arguments: str) -> Iterator[str]:
    """Run `barnabas console`, and yield the address of its first page, without the slash at its end."""
    command = [sys.executable, "-m", "barnabas.main", "console", "--listen", "127.0.0.1:0", *arguments]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], READY_SECONDS)
            line = process.stdout.readline() if ready else ""
            found = re.search(r"on (http://\S+)/$", line.strip())
            if found is None:
                process.kill()
                process.wait()
                errors.seek(0)
                raise RuntimeError(f"the console did not start: {line!r} {errors.read()[-2000:]}")
            yield found[1]
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()

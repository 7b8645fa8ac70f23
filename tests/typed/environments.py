"""Virtual environments with the wheel, and with the extras that a page names."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# In a page "pip install ." takes the checkout; here the wheel is in its place.
_PIP = """#!/bin/bash
words=()
for word in "$@"; do
  case $word in
    .) words+=("{wheel}") ;;
    .\\[*) words+=("{wheel}${{word#.}}") ;;
    *) words+=("$word") ;;
  esac
done
exec "{uv}" --offline pip "${{words[0]}}" -q --python "{python}" --constraints "{locked}" "${{words[@]:1}}"
"""


def extras_of(text: str) -> tuple[str, ...]:
    """Return the extras that a page tells its reader to install, in order; `cli` if it names none, as docs/install.md begins."""
    named = ",".join(re.findall(r"\.\[([a-z,]+)\]", text)).split(",")
    named += re.findall(r"extras?(?:\]\([^)]*\))?\s+\[?`([a-z]+)`", text)
    return tuple(sorted({"cli", *filter(None, named)}))


def packages_of(text: str) -> tuple[str, ...]:
    """Return the other packages that a page tells its reader to install beside barnabas."""
    found = re.findall(r'^(?:\$ )?pip install "\.\[[a-z,]+\]" ([a-z][\w -]*)$', text, re.MULTILINE)
    return tuple(sorted({name for names in found for name in names.split()}))


class Environments:
    """Makes environments below a folder, one for each set of extras; pages may ask at once.

    Raises:
        RuntimeError: uv is not installed, or does not build or install something.
    """

    def __init__(self, folder: Path) -> None:
        found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
        if found is None:
            raise RuntimeError("uv is not installed")
        self._uv = found
        self._folder = folder
        self._making = threading.Lock()
        self._locked = folder / "locked.txt"
        self._locked.write_text(
            self._run("export", "-q", "--frozen", "--all-groups", "--all-extras", "--no-emit-project", "--no-hashes")
        )
        self._run("build", "-q", "--wheel", "--out-dir", str(folder / "dist"))
        self.wheel = next((folder / "dist").glob("*.whl"))

    def _run(self, *words: str) -> str:
        done = subprocess.run([self._uv, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"uv {' '.join(words)}\n{done.stderr}")
        return done.stdout

    def of_page(self, text: str) -> Path:
        """Return the folder of an environment with the wheel, and with the extras and packages that a page names."""
        extras, packages = extras_of(text), packages_of(text)
        folder = self._folder / f"with-{'-'.join(extras + packages)}"
        with self._making:
            if not folder.exists():
                self._run("venv", "-q", "--python", sys.executable, str(folder))
                python = folder / "bin" / "python"
                pip = folder / "bin" / "pip"
                pip.write_text(_PIP.format(wheel=self.wheel, uv=self._uv, python=python, locked=self._locked))
                pip.chmod(0o755)
                wanted = f"{self.wheel}[{','.join(extras)}]"
                self._run(
                    "pip",
                    "install",
                    "-q",
                    "--python",
                    str(python),
                    "--constraints",
                    str(self._locked),
                    wanted,
                    *packages,
                )
        return folder

"""Write the software bill of materials of the wheel: `dist/barnabas-VERSION.cdx.json`, in CycloneDX's format 1.5.

    python tools/write_sbom.py [--output-dir dist]        `make dist` does it

It lists barnabas, and every package of the lock file that one of its extras brings, with its version; nothing that only development needs.
The versions are those with which this release is tested; an installation may have newer ones.

Source: `uv export --format cyclonedx1.5`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from barnabas.version import VERSION

ROOT = Path(__file__).parent.parent
EXPORT = ("export", "-q", "--frozen", "--no-dev", "--all-extras", "--format", "cyclonedx1.5")


def of_release(bill: dict[str, Any]) -> dict[str, Any]:
    """Return a bill that names the release: uv does not know a version that is read from the source."""
    component = bill["metadata"]["component"]
    component |= {"type": "library", "version": VERSION, "purl": f"pkg:pypi/barnabas@{VERSION}"}
    return bill


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", type=Path, default=ROOT / "dist")
    folder = parser.parse_args().output_dir
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        print("uv is not installed: pip install uv")
        return 1
    done = subprocess.run([uv, *EXPORT], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"uv cannot list the packages of the lock file: {done.stderr.strip()}")
        return 1
    folder.mkdir(exist_ok=True)
    file = folder / f"barnabas-{VERSION}.cdx.json"
    file.write_text(json.dumps(of_release(json.loads(done.stdout)), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

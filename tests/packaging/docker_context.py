"""What a Dockerfile copies from the build context, into a folder instead of an image: no Docker engine is needed.

The rules of `.dockerignore` are tried in order, and the last that matches a file or one of its folders decides; `!` takes files back.
`COPY` takes files into a folder whose name ends with `/`, and the content of a folder into the folder that is named last.
Limits: no flags of COPY, no wildcards in its sources, `**` only as the first part of a rule.
Source: Docker's reference, ".dockerignore file" and "COPY".
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath


def copies(dockerfile: str) -> list[tuple[list[str], str]]:
    """Return the sources and the destination of each COPY that reads the build context."""
    lines = dockerfile.replace("\\\n", " ")
    words = [line.split() for line in re.findall(r"^COPY (.*)$", lines, re.MULTILINE)]
    assert not any(word.startswith("--") for line in words for word in line), "a flag of COPY is not understood here"
    return [(line[:-1], line[-1]) for line in words]


def is_ignored(rules: list[str], path: PurePosixPath) -> bool:
    """Return whether `.dockerignore` keeps a file out of the context."""
    ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!").strip("/")
        if any(_matches(pattern, each) for each in (path, *path.parents[:-1])):
            ignored = not rule.startswith("!")
    return ignored


def _matches(pattern: str, path: PurePosixPath) -> bool:
    if pattern.startswith("**/"):
        tail = PurePosixPath(pattern).parts[1:]
        parts = path.parts[-len(tail) :]
    else:
        tail, parts = PurePosixPath(pattern).parts, path.parts
    return len(tail) == len(parts) and all(map(fnmatchcase, parts, tail))


def context(root: Path) -> Iterator[PurePosixPath]:
    """Yield the files that Docker would send, as paths within the context."""
    lines = (root / ".dockerignore").read_text().splitlines()
    rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    tops = [root / name for sources, _ in copies((root / "Dockerfile").read_text()) for name in sources]
    for top in tops:
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and not is_ignored(rules, found := PurePosixPath(path.relative_to(root))):
                yield found


def copy_into(root: Path, folder: Path) -> None:
    """Make a folder look as the build stage's working directory does after its COPY lines.

    Raises:
        FileNotFoundError: COPY names something that the context does not have, which stops a build.
    """
    sent = list(context(root))
    for sources, destination in copies((root / "Dockerfile").read_text()):
        for source in sources:
            within = [path for path in sent if path.is_relative_to(source)]
            if not within:
                raise FileNotFoundError(f"COPY {source}: it is not there, or .dockerignore keeps it out")
            for path in within:
                is_file = path == PurePosixPath(source)
                target = folder / destination / (path.name if is_file else path.relative_to(source))
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / path, target)

"""The files of the packages in a wheel: those under `src`, and the pipeline's project, which the demo copies."""

from __future__ import annotations

from tests.pages import ROOT

_FROM = {"src": "", "pipelines/shop": "barnabas/demo/project/"}


def packaged_files() -> set[str]:
    """Return the names that every wheel must have, beside its own description."""
    return {
        f"{prefix}{path.relative_to(ROOT / top).as_posix()}"
        for top, prefix in _FROM.items()
        for path in (ROOT / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

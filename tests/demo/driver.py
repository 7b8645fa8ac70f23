"""The pipeline alone in a process that a test can kill: `python -m tests.demo.driver SERVERS FOLDER [now]`."""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas.demo.pipeline import Pipeline, open_session

PATIENCE_S = 1200


def main(servers: str, folder: Path, available_now: bool) -> None:
    """Run the queries until they have read all that is there now, or until somebody ends this process."""
    pipeline = Pipeline(open_session(folder), servers, folder)
    pipeline.start(available_now=available_now, patience_s=PATIENCE_S)
    pipeline.wait()
    pipeline.check()
    assert pipeline.dropped() == 0, "rows came too late for their window"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:] == ["now"])

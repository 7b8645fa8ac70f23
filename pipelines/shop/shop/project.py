"""A project's folder: who runs in it, where its queries are, and how to move them.

conf/ shop/ transformations/ spark-pipeline.yml    the project
spark-warehouse/ metastore_db/                     the tables and their catalogue
storage/                                           the declarative form's offsets
checkpoints/QUERY/                                 the continuous form's offsets and state
starting.json                                      where a query without a checkpoint begins
status.json                                        what the watcher saw last
running                                            locked by the process that runs the queries; its id
old/                                               what `reset` and `upgrade` put aside
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from shop.streams import DATABASE, FROM_TOPICS, NAMES


class ProjectError(Exception):
    """The command does not fit the project's folder; the message is for the user."""


class Project:
    """One project's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if not (self.folder / "spark-pipeline.yml").exists():
            raise ProjectError(f"{folder} is not a shop's folder (`python -m barnabas.demo.new_shop FOLDER` makes one)")

    def __repr__(self) -> str:
        return f"<Project folder={self.folder}>"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only process that runs or moves the queries: two would write every row twice.

        Raises:
            ProjectError: another process is.
        """
        with open(self.folder / "running", "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ProjectError(
                    f"the shop runs as process {self.runner()} (`python -m shop stop` ends it)"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield
            file.truncate(0)

    def runner(self) -> int | None:
        """Return the id of the process that runs the queries, or None if none does."""
        try:
            with open(self.folder / "running") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(file.read() or 0)
        except FileNotFoundError:
            pass
        return None

    def write_status(self, status: dict[str, Any]) -> None:
        """Replace the status; a reader sees the old one or the new one."""
        path = self.folder / "status.json"
        path.with_suffix(".new").write_text(json.dumps(status | {"at": time.time()}, indent=1))
        os.replace(path.with_suffix(".new"), path)

    def status(self) -> dict[str, Any] | None:
        """Return the last status, or None if the queries never ran."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "status.json").read_text())
        except FileNotFoundError:
            return None
        return found

    def starting(self) -> dict[str, dict[str, str]]:
        """Return where queries without a checkpoint begin, as options of the source."""
        try:
            found: dict[str, dict[str, str]] = json.loads((self.folder / "starting.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def positions(self, name: str) -> str | None:
        """Return where a query will go on, as `startingOffsets`: another query that begins there misses nothing.

        None if the query has finished no batch, or reads a table.
        """
        committed = _numbers(self.folder / "checkpoints" / name / "commits")
        if name not in FROM_TOPICS or not committed:
            return None
        logged = (self.folder / "checkpoints" / name / "offsets" / str(max(committed))).read_text()
        offsets = json.loads(logged.splitlines()[-1])
        return json.dumps({topic: each for topic, each in offsets.items() if not topic.startswith("~")})

    def reset(self, to: str) -> Path:
        """Put every table and checkpoint of the continuous form aside, and begin again at `to`.

        Args:
            to: `earliest`, `latest`, or a moment as in `startingTimestamp`.
        """
        option = "startingOffsets" if to in ("earliest", "latest") else "startingTimestamp"
        aside = self._aside()
        for name in NAMES:
            self._put_aside(name, aside, table=True)
        (self.folder / "starting.json").write_text(json.dumps({name: {option: to} for name in FROM_TOPICS}))
        return aside

    def upgrade(self, name: str) -> Path:
        """Let the changed code of a query with state take over: it starts over, with an empty table.

        The other queries need nothing: changed code goes on from their checkpoints. Never delete one of those. The
        table remembers the number of the last batch that it took, and a query that counts from 0 again would see its
        batches ignored.
        """
        aside = self._aside()
        self._put_aside(name, aside, table=True)
        return aside

    def _aside(self) -> Path:
        aside = self.folder / "old" / datetime.now().strftime("%Y-%m-%dT%H-%M-%S.%f")
        aside.mkdir(parents=True)
        return aside

    def _put_aside(self, name: str, aside: Path, *, table: bool) -> None:
        checkpoint = self.folder / "checkpoints" / name
        if checkpoint.exists():
            (aside / "checkpoints").mkdir(exist_ok=True)
            checkpoint.rename(aside / "checkpoints" / name)
        rows = self.folder / "spark-warehouse" / f"{DATABASE}.db" / name
        if table and rows.exists():
            (aside / "tables").mkdir(exist_ok=True)
            rows.rename(aside / "tables" / name)
            rows.mkdir()


def _numbers(log: Path) -> list[int]:
    return [int(path.name) for path in log.glob("*") if path.name.isdigit()]

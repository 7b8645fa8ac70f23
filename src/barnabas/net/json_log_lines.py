"""The broker's own log for machines that collect logs: each event is one JSON object on one line (`barnabas start --log-format json`).

    {"time": "2026-11-29T04:31:07.412Z", "level": "INFO", "logger": "barnabas.node.member", "message": "…", "node": 2}

- `time` is UTC, in milliseconds (RFC 3339). `node` is absent until the settings are read.
- `exception` and `stack` hold a traceback, with its line ends.
- All text is ASCII with JSON's escapes, so no client's name can begin a line or drive a terminal. Values from `config.providers` are
  left out, and a long message is cut, as in `log_lines`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType

from barnabas.net.log_lines import shortened

__all__ = ["JsonFormatter", "log_what_ends_the_process"]

logger = logging.getLogger(__name__)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line.

    Attributes:
        node_id: the node's id; None before it is known.
    """

    def __init__(self) -> None:
        super().__init__()
        self.node_id: int | None = None

    def __repr__(self) -> str:
        return f"<JsonFormatter node={self.node_id}>"

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, str | int] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": shortened(record.getMessage()),
        }
        if self.node_id is not None:
            said["node"] = self.node_id
        if record.exc_info:
            said["exception"] = _without_hidden(self.formatException(record.exc_info))
        if record.stack_info:
            said["stack"] = _without_hidden(record.stack_info)
        # JSON leaves this one control character as it is.
        return json.dumps(said).replace("\x7f", "\\u007f")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _without_hidden(text: str) -> str:
    return "\n".join(shortened(line) for line in text.split("\n"))


def log_what_ends_the_process() -> None:
    """Log an exception that ends this process as a line of the log, in place of Python's own lines."""
    sys.excepthook = _log_exception


def _log_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logger.critical("The process ends: %s", kind.__name__, exc_info=(kind, error, trace))

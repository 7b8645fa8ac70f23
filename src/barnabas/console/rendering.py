"""HTML of pages, by templates that escape everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Return the templates; a name that is missing is an error, and every value is escaped."""
    found = Environment(
        autoescape=True,
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return found


class Templates:
    """The console's templates, with what each of them knows."""

    def __init__(self, **known: Any) -> None:
        self._environment = environment()
        self._environment.globals.update(known)

    def __repr__(self) -> str:
        return f"<Templates {sorted(self._environment.list_templates())}>"

    def html(self, name: str, **values: Any) -> str:
        """Return a page, or a part of one."""
        return self._environment.get_template(f"{name}.html").render(**values)

"""The table of the card's programs: what runs on a broker and is more than one client. Each scenario is a test of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One row; `scenarios` maps a scenario to what it shows."""

    name: str
    language: str
    scenarios: Mapping[str, str]


PROGRAMS: tuple[Program, ...] = ()

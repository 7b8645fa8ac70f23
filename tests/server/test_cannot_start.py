"""A remedy is worded for the one who started the broker."""

from __future__ import annotations

from barnabas.server.cannot_start import remedies


def test_the_command_line_hears_of_options_and_python_of_arguments() -> None:
    assert all("--" in words and "=" not in words for words in remedies(embedded=False))
    assert all("=" in words and "--" not in words for words in remedies(embedded=True))

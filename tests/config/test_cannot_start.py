"""`CannotStart`: the words of each kind of user, and no module of the broker behind it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.config.cannot_start import CannotStart, check_system, remedies


def test_each_user_gets_words_that_can_be_typed() -> None:
    for remedy in remedies(embedded=True):
        assert "--" not in remedy
    for remedy in remedies(embedded=False):
        assert "=" not in remedy


def test_it_needs_no_module_of_the_broker() -> None:
    code = "import sys; from barnabas import CannotStart; print(*(n for n in sys.modules if n.startswith('barnabas.')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == {
        "barnabas.imported_when_used",
        "barnabas.config",
        "barnabas.config.cannot_start",
    }


def test_windows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_system()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(CannotStart, match="the broker needs Linux or macOS"):
        check_system()

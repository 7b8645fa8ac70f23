"""No page tells its readers to install `barnabas` by name. The name is not registered: a stranger could register it and send them code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
INSTALLERS = re.compile(r"\b(pip3?|pipx|uv tool|uv pip) install\b|\buv add\b|\buvx\b")
EXTRAS = re.compile(r"\[[^]]*\]")
NAME = re.compile(r"""[("']*barnabas[)"'.,:;]*""")


def told(text: str) -> list[str]:
    return [
        line.strip()
        for line in text.splitlines()
        if (installer := INSTALLERS.search(line))
        and "--no-index" not in line
        and any(NAME.fullmatch(word) for word in _words(line[installer.end() :]))
    ]


def _words(rest: str) -> list[str]:
    return EXTRAS.sub("", rest.partition("`")[0]).replace(" @ ", "@").split()


def test_nothing_installs_barnabas_by_name() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    pages = [ROOT / name for name in listed.splitlines() if re.search(r"\.(md|py|toml|ya?ml|service)$|file$", name)]
    found = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in pages
        if page.exists() and page != Path(__file__)
        for line in told(page.read_text())
    ]
    assert found == []


def test_the_check_finds_what_it_should() -> None:
    assert told('run `pip install "barnabas[spark]"`.')
    assert told('run `pip install "barnabas[spark,lake]"`.')
    assert told("uv pip install 'barnabas[spark, lake]'")
    assert told("python -m pip install --upgrade barnabas")
    assert not told("`pip install .` installs barnabas into another environment")
    assert not told('pip install "barnabas[spark] @ file:///tmp/barnabas.whl"')
    assert not told("pip install dist/barnabas-0.1.whl")

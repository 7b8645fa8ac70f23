"""Types the commands of one page, in an empty folder, in namespaces of its own: no other process and no other port is in its way.

    python -m tests.typed.page PAGE ENVIRONMENT FOLDER

runs within them, and prints a `Report` as JSON. A page that does not begin with a broker of its own gets one on localhost:9092, as its
reader has one. Who starts the page is `type_page`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.documents import Block, blocks
from tests.test_documents import STATES
from tests.typed.environments import ROOT
from tests.typed.not_typed import NOT_TYPED
from tests.typed.outputs import difference
from tests.typed.terminal import Failed, Terminal

_ALONE = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
# What stands in a page for a folder here: its reader's home, and a folder that only root can make (of docs/clusters.md).
_HOME, _OF_ROOT = "/home/you", ("data-of-one", "/var/lib/barnabas")
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


@dataclass
class Report:
    """What a page's commands did.

    Attributes:
        page: its path, from the root of the project.
        commands: how many were typed.
        compared: how many outputs were compared with the page.
        wrong: what failed or was printed otherwise, a text each.
        listed: the first commands of the blocks that were not typed.
    """

    page: str
    commands: int = 0
    compared: int = 0
    wrong: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of commands of a page, given by its path from the root of the project."""
    return blocks(page, (ROOT / page).read_text())


def is_typed(block: Block) -> bool:
    """Return whether a block is typed, because no reason is listed not to."""
    return (block.page, block.commands[0]) not in NOT_TYPED


def why_not_alone() -> str | None:
    """Return why no process can have a network of its own here; None if it can."""
    if shutil.which("unshare") is None:
        return "unshare (util-linux) is not installed"
    done = subprocess.run([*_ALONE, "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"unshare ended with {done.returncode}" if done.returncode else None


def type_page(page: str, environment: Path, folder: Path) -> Report:
    """Type the commands of a page in a folder that does not exist yet."""
    words = [*_ALONE, sys.executable, "-m", "tests.typed.page", page, str(environment), str(folder)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return Report(page, wrong=[f"the page's process ended with {done.returncode}\n{done.stderr}"])
    return Report(**json.loads(done.stdout.splitlines()[-1]))


def _bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


def _variables(environment: Path, home: Path) -> dict[str, str]:
    path = f"{environment / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "VIRTUAL_ENV": str(environment), "LANG": "C.UTF-8", "COLUMNS": "200"}


def _type_block(block: Block, terminal: Terminal, home: Path, report: Report) -> None:
    try:
        os.chdir(terminal.type("pwd -P").strip())
        for words in block.setup:
            STATES[words](terminal)  # type: ignore[arg-type]  # a Terminal types, keeps, serves and stops as a Typist does
    except Exception:
        report.wrong.append(f"{block.name}\n{'; '.join(block.setup)}\n{traceback.format_exc()}")
        return
    for number, command in enumerate(block.commands):
        report.commands += 1
        try:
            printed = terminal.type(command).replace(str(home), _HOME).replace(*_OF_ROOT)
            if block.outputs:
                report.compared += 1
                if found := difference(block.outputs[number], printed, block.differs):
                    report.wrong.append(f"$ {command}\n{found}")
        except (Failed, ValueError) as error:
            report.wrong.append(f"$ {command}\n{error}")


def _type_all(page: str, environment: Path, folder: Path) -> Report:
    report = Report(page)
    home, logs, given = (folder / name for name in ("home", "logs", "given"))
    for each in (home, logs, given):
        each.mkdir(parents=True)
    if ".venv/bin/activate" in (ROOT / page).read_text():
        (home / ".venv").symlink_to(environment)
    os.chdir(home)
    terminal = Terminal(home, logs, _variables(environment, home))
    typed = [block for block in blocks_of(page) if is_typed(block)]
    report.listed = [block.commands[0] for block in blocks_of(page) if not is_typed(block)]
    try:
        if typed and not typed[0].commands[0].startswith("barnabas start "):
            terminal.type(f"barnabas start --data-dir {given} --set group.initial.rebalance.delay.ms=0")
        for block in typed:
            _type_block(block, terminal, home, report)
        terminal.stop()
    finally:
        terminal.close()
    return report


if __name__ == "__main__":
    _bring_loopback_up()
    print(json.dumps(asdict(_type_all(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))))
    sys.stdout.flush()
    os._exit(0)  # what a state has given, such as a producer with an open transaction, need not end in order

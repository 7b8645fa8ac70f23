"""An ext4 file system in a file, which can be shut down as a crash, or a disk that breaks, would (`FS_IOC_SHUTDOWN` without a flush).

After that each call on it is an error (EIO), and what only the page cache had is gone. xfstests does the same. It needs Linux, root, loop
devices and `mkfs.ext4`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path

from tests.cluster.waiting import wait_for

_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSH = 2
_BYTES = 2 << 30
"""Of a file system; its file has holes."""
_TOOLS = ("mkfs.ext4", "mount", "umount", "losetup", "sync")


class NoLoopDisk(Exception):
    """This machine does not allow it; the message says why, in one line."""


def run_tool(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NoLoopDisk(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class LoopDisk:
    """A file system, made and mounted.

    Args:
        image: its file.
        top: where it is mounted; made if it is missing.
        tools: more programs that the caller needs.

    Raises:
        NoLoopDisk: the machine does not allow it.
    """

    def __init__(self, image: Path, top: Path, tools: tuple[str, ...] = ()) -> None:
        missing = [tool for tool in (*_TOOLS, *tools) if shutil.which(tool) is None]
        if missing or os.geteuid():
            raise NoLoopDisk(f"{' and '.join(missing)} not found" if missing else "only root may mount file systems")
        self.image, self.top = image, top
        top.mkdir(parents=True)
        self.make()
        self.mount()

    def __repr__(self) -> str:
        return f"<LoopDisk {self.top}>"

    def make(self) -> None:
        """Make it empty; it must not be mounted."""
        with self.image.open("wb") as file:
            file.truncate(_BYTES)
        run_tool("mkfs.ext4", "-q", "-F", "-m", "0", str(self.image))

    def mount(self) -> None:
        """Mount it; the mount of one that was shut down replays the journal."""
        run_tool("mount", "-o", "loop", str(self.image), str(self.top))

    def shut_down(self) -> None:
        """Let each call fail from now on, and lose what has not been written."""
        handle = os.open(self.top, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(handle)

    def write_out(self) -> None:
        """Have the kernel write all that it was given."""
        run_tool("sync", "--file-system", str(self.top))

    def unmount(self) -> None:
        """Unmount it if it is mounted; no process may use it."""
        if not os.path.ismount(self.top):
            return
        run_tool("umount", str(self.top))
        # Somebody's copy of the mount would bring the same page cache back.
        wait_for(
            f"nobody else has {self.image}",
            lambda: not run_tool("losetup", "--associated", str(self.image)).strip(),
            30,
        )

"""Numbers of bytes as people read them."""

from __future__ import annotations

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def format_bytes(count: int) -> str:
    """Return a size in decimal units with three digits: `0 B`, `999 B`, `1.23 kB`, `45.6 MB`, `789 GB`."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in _UNITS:
        size /= 1000
        if size < 999.5 or unit == _UNITS[-1]:
            break
    return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f} {unit}"

"""The loops over records that barnabas runs in C, if this package is installed. See `_native.pyi`."""

from barnabas_native._native import HEADERS, INTERFACE, KEY, TIMESTAMP, VALUE, decode, digest

__all__ = ["HEADERS", "INTERFACE", "KEY", "TIMESTAMP", "VALUE", "decode", "digest"]

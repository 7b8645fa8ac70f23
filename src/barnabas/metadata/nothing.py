"""The empty mapping that the parts of an image begin with: one object, which cannot be changed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[Any, Any] = MappingProxyType({})

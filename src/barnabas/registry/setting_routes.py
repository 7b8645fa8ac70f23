"""Answers about compatibility levels and modes, of a subject or of all."""

from __future__ import annotations

from typing import Any

from barnabas.registry.asked import Asked
from barnabas.registry.settings import change_config, change_mode, config_of, mode_of, reset_config, reset_mode
from barnabas.registry.state import RegistryState
from barnabas.registry.writing import Decision

__all__ = ["config", "delete_config", "delete_mode", "mode", "put_config", "put_mode"]


async def config(asked: Asked) -> dict[str, Any]:
    """GET /config, /config/{subject}"""

    async def ask(state: RegistryState) -> dict[str, Any]:
        return config_of(state, asked.parts.get("subject"), falls_back=asked.is_set("defaultToGlobal"))

    return await asked.registry.read(ask)


async def put_config(asked: Asked) -> dict[str, Any]:
    """PUT /config, /config/{subject}"""
    body = asked.body()

    async def decide(state: RegistryState) -> Decision[dict[str, Any]]:
        return change_config(state, asked.parts.get("subject"), body)

    return await asked.registry.write(decide)


async def delete_config(asked: Asked) -> dict[str, Any]:
    """DELETE /config, /config/{subject}"""

    async def decide(state: RegistryState) -> Decision[dict[str, Any]]:
        return reset_config(state, asked.parts.get("subject"))

    return await asked.registry.write(decide)


async def mode(asked: Asked) -> dict[str, Any]:
    """GET /mode, /mode/{subject}"""

    async def ask(state: RegistryState) -> dict[str, Any]:
        return {"mode": mode_of(state, asked.parts.get("subject"), falls_back=asked.is_set("defaultToGlobal"))}

    return await asked.registry.read(ask)


async def put_mode(asked: Asked) -> dict[str, Any]:
    """PUT /mode, /mode/{subject}"""
    wanted = asked.body().get("mode")

    async def decide(state: RegistryState) -> Decision[Any]:
        return change_mode(state, asked.parts.get("subject"), wanted, force=asked.is_set("force"))

    return {"mode": await asked.registry.write(decide)}


async def delete_mode(asked: Asked) -> dict[str, Any]:
    """DELETE /mode, /mode/{subject}"""

    async def decide(state: RegistryState) -> Decision[Any]:
        return reset_mode(state, asked.parts.get("subject"))

    return {"mode": await asked.registry.write(decide)}

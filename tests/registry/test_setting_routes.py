"""Compatibility levels and modes over HTTP."""

from __future__ import annotations

from tests.registry.asking import Asking, record


def test_levels(registry: Asking, subject: str) -> None:
    path = f"/config/{subject}"
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.get(path) == registry.delete(path) == 40408
    assert registry.get(f"{path}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert registry.put(path, compatibility="forward") == {"compatibility": "FORWARD"}
    assert registry.get(path) == {"compatibilityLevel": "FORWARD"}
    registry.register(subject, record("a"))
    assert isinstance(registry.register(subject, record("a", "b")), int)
    assert [registry.put(path, compatibility=each) for each in ("SOME", 1, "")] == [42203] * 3
    assert registry.put(path, compatibilityGroup="x") == 422
    assert registry.put(path, normalize=True) == {"normalize": True}
    assert registry.delete(path) == {"compatibilityLevel": "FORWARD", "normalize": True}
    assert registry.get(path) == 40408


def test_normalized_unasked(registry: Asking, subject: str) -> None:
    registry.put(f"/config/{subject}", compatibility="NONE", normalize=True)
    left = registry.register(subject, {"type": "int", "x": 1, "y": 2})
    assert registry.register(subject, {"type": "int", "y": 2, "x": 1}) == left


def test_modes(registry: Asking, subject: str) -> None:
    path = f"/mode/{subject}"
    assert registry.get("/mode") == {"mode": "READWRITE"}
    assert registry.get(path) == registry.delete(path) == 40409
    assert registry.get(f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert registry.put(path, mode="SOME") == 42204
    assert registry.put(path, mode="READONLY") == {"mode": "READONLY"}
    assert registry.register(subject, '"int"') == 42205
    assert registry.delete(f"/subjects/{subject}") == 42205
    assert registry.put(f"/config/{subject}", compatibility="NONE") == 42205
    assert registry.delete(path) == {"mode": "READONLY"}
    assert isinstance(registry.register(subject, '"int"'), int)


def test_schemas_are_imported_with_their_ids(registry: Asking, subject: str) -> None:
    assert registry.put(f"/mode/{subject}", mode="IMPORT") == {"mode": "IMPORT"}
    assert registry.register(subject, '"int"') == 42205, "an id is missing"
    own = {"type": "fixed", "name": "Imported", "size": 7}
    assert registry.register(subject, own, id=5_000, version=3) == 5_000
    assert registry.register(subject, '"bytes"', id=5_000, version=4) == 42207
    assert registry.get(f"/subjects/{subject}/versions") == [3]
    registry.delete(f"/mode/{subject}")
    registry.put(f"/config/{subject}", compatibility="NONE")
    assert registry.register(subject, record("later", name="Later")) == 5_001
    assert registry.put(f"/mode/{subject}", mode="IMPORT") == 42205, "there are schemas"
    assert registry.put(f"/mode/{subject}?force=true", mode="IMPORT") == {"mode": "IMPORT"}

"""Problems have Confluent's codes, and names from outside cannot forge a line."""

from __future__ import annotations

import pytest

from barnabas.registry import problems
from barnabas.registry.problems import Problem


@pytest.mark.parametrize(
    ("problem", "status", "code"),
    [
        (problems.subject_not_found("s"), 404, 40401),
        (problems.version_not_found(1), 404, 40402),
        (problems.schema_not_found(1), 404, 40403),
        (problems.subject_deleted("s"), 404, 40404),
        (problems.subject_not_deleted("s"), 404, 40405),
        (problems.version_deleted("s", 1), 404, 40406),
        (problems.version_not_deleted("s", 1), 404, 40407),
        (problems.no_level("s"), 404, 40408),
        (problems.no_mode("s"), 404, 40409),
        (problems.incompatible(["why"]), 409, 409),
        (problems.invalid_schema("why"), 422, 42201),
        (problems.invalid_version("x"), 422, 42202),
        (problems.invalid_level("x"), 422, 42203),
        (problems.invalid_mode("x"), 422, 42204),
        (problems.not_permitted("why"), 422, 42205),
        (problems.reference_exists("s", 1), 422, 42206),
        (problems.id_taken(1), 422, 42207),
    ],
)
def test_codes(problem: Problem, status: int, code: int) -> None:
    assert (problem.status, problem.to_json()["error_code"]) == (status, code)


def test_a_name_cannot_forge_a_line() -> None:
    assert problems.subject_not_found("a\nb").message == "Subject 'a\\nb' not found."

"""Random access control lists and questions get the decisions of Apache Kafka's StandardAuthorizer, and its reasons.

`make conform ARGS="-k same_decisions --acl-questions 1000000"` asks a million; without the option it is a fraction of that.
"""

from __future__ import annotations

import random

import pytest

from tests.conform.authorizer.java import ask, compile_program
from tests.conform.authorizer.questions import answers, lines, ranges

pytestmark = pytest.mark.conform
# Bounds the memory of one run of the program.
CHUNK = 100_000


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compile_program(tmp_path_factory.mktemp("deciding"))


def _compare(classes: str, asked: list[str]) -> int:
    theirs, ours = ask(classes, asked), list(answers(asked))
    assert len(theirs) == len(ours)
    wrong = [index for index, (one, other) in enumerate(zip(theirs, ours, strict=True)) if one != other]
    if wrong:
        questions = [index for index, line in enumerate(asked) if line[0] in "QTV"]
        end = questions[wrong[0]]
        begin = max(index for index in range(end + 1) if asked[index][0] in "NV")
        case = "\n".join(line for line in asked[begin : end + 1] if line[0] in "NAR" or line is asked[end])
        pytest.fail(
            f"{len(wrong)} of {len(ours)} differ; the first:\n{case}\nKafka {theirs[wrong[0]]}\nours  {ours[wrong[0]]}"
        )
    return len(ours)


def test_random_acls_get_the_same_decisions(classes: str, request: pytest.FixtureRequest) -> None:
    questions = request.config.getoption("--acl-questions")
    draw = random.Random(2311)
    asked, allowed = 0, 0
    while asked < questions:
        chunk = list(lines(draw, min(CHUNK, questions - asked)))
        asked += _compare(classes, chunk)
        allowed += sum("yes" in answer for answer in answers(chunk))
    # Both answers are frequent, or the questions are not worth asking.
    assert 0.1 < allowed / asked < 0.9
    print(f"{asked} questions, {allowed} of them allowed")


def test_hosts_are_ranges_for_both_or_for_neither(classes: str) -> None:
    assert _compare(classes, list(ranges(random.Random(2312), 2000))) > 2000

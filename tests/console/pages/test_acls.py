"""The page of ACLs, and questions about them. `changes/test_acls` has a broker with an authorizer."""

from starlette.testclient import TestClient

from tests.console.reading import html, tags, twin


def test_a_cluster_without_an_authorizer_is_a_sentence(browser: TestClient) -> None:
    found = twin(browser, "acls")
    assert found["acls"] == {"error": found["acls"]["error"]}
    assert "authorizer" in found["acls"]["error"].lower()


def test_a_question_that_is_not_whole(browser: TestClient) -> None:
    for query, sentence in (
        ({"principal": "alice"}, "“alice” is not a principal"),
        ({"principal": "User:<b>", "operation": "read"}, "The resource is missing"),
        ({"principal": "User:a", "operation": "read", "resource": "topic", "name": "t"}, "The address is missing"),
        (
            {"principal": "User:a", "operation": "?", "host": "::1", "resource": "topic", "name": "t"},
            "The operation must be one of",
        ),
    ):
        assert sentence.lower() in twin(browser, "acls", **query)["explain"]["error"].lower()
    page = html(browser, "acls", principal="User:<b>")
    assert "<b>" not in page
    assert [each["value"] for tag, each in tags(page) if tag == "input" and each["name"] == "principal"] == ["User:<b>"]

"""Changes of a listener's stores on a whole node: what the broker rejects before it forwards, what is kept, and what is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest
from tests.api.served_node import Serving
from tests.net.listening import until
from tests.net.test_renewed_store import Files

BROKER, TOPIC = 4, 2
PREFIX = "listener.name.out.ssl."
FRAME = "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of SSLFactory failed: "


class Secured(Serving):
    """A node with a listener with TLS."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.files = Files(folder)
        settings = {name.replace(".", "_"): text for name, text in self.files.settings().items()}
        super().__init__(
            folder, listeners="OUT://127.0.0.1:0", listener_security_protocol_map="OUT:SSL", **settings, **more
        )

    @property
    def certificate(self) -> str:
        store = self.server.stores.get("OUT", is_server=True)
        assert store is not None
        return store.certificate

    def wait(self, condition: Callable[[], bool]) -> None:
        """Let the metadata arrive; the test's own timeout is the bound."""
        self.loop.run_until_complete(until(condition))

    def alter(
        self, *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False
    ) -> list[tuple[int, str]]:
        """Set settings, or delete those without a value; return codes and messages."""
        request = IncrementalAlterConfigsRequest
        asked = [
            request.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    request.AlterableConfig(name=setting, config_operation=1 if text is None else 0, value=text)
                    for setting, text in changes.items()
                ],
            )
            for kind, name, changes in resources
        ]
        answers = self.ask(request(resources=asked, validate_only=validate_only)).responses
        assert [(each.resource_type, each.resource_name) for each in answers] == [each[:2] for each in resources]
        return [(each.error_code, each.error_message or "") for each in answers]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Secured]:
    node = Secured(tmp_path)
    yield node
    node.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Files:
    (tmp_path / "elsewhere").mkdir()
    return Files(tmp_path / "elsewhere")


def test_new_stores_are_used_and_kept(serving: Secured, elsewhere: Files) -> None:
    before = serving.certificate
    new = {f"{PREFIX}keystore.location": str(elsewhere.key), f"{PREFIX}keystore.type": "PEM"}
    assert serving.alter((BROKER, "1", new), validate_only=True) == [(0, "")]
    assert serving.certificate == before
    assert serving.alter((BROKER, "1", dict(new))) == [(0, "")]
    serving.wait(lambda: serving.certificate != before)
    renewed = serving.certificate
    # The same setting again: the file is read again, if it has changed.
    elsewhere.renew()
    assert serving.alter((BROKER, "1", dict(new))) == [(0, "")]
    serving.wait(lambda: serving.certificate not in (before, renewed))
    assert serving.alter((BROKER, "1", dict.fromkeys(new))) == [(0, "")]
    serving.wait(lambda: serving.certificate == before)


def test_stores_that_the_node_may_not_use_are_rejected_among_others(serving: Secured, elsewhere: Files) -> None:
    serving.create_topic("orders")
    elsewhere.renew("CN=other")
    before = serving.certificate
    wrong = {f"{PREFIX}keystore.location": str(elsewhere.key)}
    good = {"retention.ms": "1000"}
    first, (code, message), last = serving.alter(
        (TOPIC, "orders", good), (BROKER, "1", wrong), (BROKER, "", {"log.cleaner.threads": "2"})
    )
    assert first == last == (0, "")
    assert code == ErrorCode.INVALID_REQUEST
    assert message.startswith(
        f"{FRAME}org.apache.kafka.common.config.ConfigException: Keystore DistinguishedName does not match:"
    )
    assert serving.certificate == before
    assert serving.server.image.configs.for_resource(BROKER, "1") == {}
    (missing,) = serving.alter((BROKER, "1", {f"{PREFIX}keystore.location": "/nowhere"}))
    assert missing[1].startswith(
        f"{FRAME}org.apache.kafka.common.errors.InvalidConfigurationException: Failed to load PEM SSL keystore /nowhere"
    )


def test_the_older_request_is_checked_too(serving: Secured, elsewhere: Files) -> None:
    request = AlterConfigsRequest

    def alter(location: str) -> tuple[int, str]:
        config = request.AlterableConfig(name=f"{PREFIX}keystore.location", value=location)
        resource = request.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
        (answer,) = serving.ask(request(resources=[resource])).responses
        return answer.error_code, answer.error_message or ""

    before = serving.certificate
    assert alter("/nowhere")[0] == ErrorCode.INVALID_REQUEST
    assert serving.certificate == before
    assert alter(str(elsewhere.key)) == (0, "")
    serving.wait(lambda: serving.certificate != before)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("2", {f"{PREFIX}keystore.location": "/x"}, "Unexpected broker id, expected 1, but received 2"),
        (
            "",
            {f"{PREFIX}keystore.location": "/x"},
            f"Cannot update these configs at default cluster level, broker id must be specified: [{PREFIX}keystore.location]",
        ),
        (
            "1",
            {"ssl.keystore.location": "/x"},
            "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]",
        ),
        ("x", {f"{PREFIX}keystore.location": "/x"}, "Node id must be an integer, but it is: x"),
    ],
)
def test_other_changes_of_stores(serving: Secured, name: str, changes: dict[str, Any], message: str) -> None:
    assert serving.alter((BROKER, name, changes)) == [(ErrorCode.INVALID_REQUEST, message)]


def test_a_resource_named_twice_is_the_controllers_to_reject(serving: Secured) -> None:
    wrong: dict[str, str | None] = {f"{PREFIX}keystore.location": "/nowhere"}
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert serving.alter((BROKER, "1", wrong), (BROKER, "1", wrong)) == [twice, twice]


def test_no_file_is_read_for_a_client_without_the_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Secured(
        tmp_path,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:admin",
    )
    try:
        asked: list[object] = []

        async def why_not(dynamic: object) -> str:
            asked.append(dynamic)
            return "read"

        node.server.services.why_not_settings = why_not
        change: dict[str, str | None] = {f"{PREFIX}keystore.location": "/etc/shadow"}
        ((code, message),) = node.alter((BROKER, "1", change))
        assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert (asked, "/etc/shadow" in message) == ([], False)
    finally:
        node.close()


def test_a_password_is_never_shown(serving: Secured, elsewhere: Files) -> None:
    changes: dict[str, str | None] = {
        f"{PREFIX}key.password": "hunter2",
        f"{PREFIX}keystore.location": str(elsewhere.key),
    }
    assert serving.alter((BROKER, "1", changes)) == [(0, "")]
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=list(changes)
    )
    (result,) = serving.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True)).results
    rows = {row.name: row for row in result.configs}
    password, location = rows[f"{PREFIX}key.password"], rows[f"{PREFIX}keystore.location"]
    assert (password.value, password.is_sensitive, location.value) == (None, True, str(elsewhere.key))
    assert "hunter2" not in repr(result)
    ((_, message),) = serving.alter((BROKER, "1", {f"{PREFIX}keystore.password": "hunter3"}))
    assert "hunter" not in message

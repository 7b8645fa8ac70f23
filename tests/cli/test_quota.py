"""`barnabas quota`: whose quota a command line names. The transcript sets some on both brokers."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.quota import _check_names, _check_there, _parsed, entity_of, label


def test_entities() -> None:
    assert entity_of("u", "c", None, ()) == (("client-id", "c"), ("user", "u"))
    assert entity_of(None, "c", None, ("user",)) == (("client-id", "c"), ("user", None))
    assert label(entity_of("u", None, None, ("client-id",))) == "any client-id, user u"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((None, None, None, ()), "Name whose quota"),
        (("u", None, None, ("user",)), "exclude each other"),
        (("u", None, "10.0.0.1", ()), "An address has quotas of its own"),
    ],
)
def test_what_has_no_quota(given: tuple[str | None, str | None, str | None, tuple[str, ...]], words: str) -> None:
    with pytest.raises(click.UsageError, match=words):
        entity_of(*given)


def test_names_of_clients_and_of_addresses() -> None:
    _check_names(["connection_creation_rate"], (("ip", None),))
    _check_names(["producer_byte_rate"], (("user", None),))
    with pytest.raises(click.UsageError, match=r"it has connection_creation_rate"):
        _check_names(["producer_byte_rate"], (("ip", None),))


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "", "1k"])
def test_values_that_are_not_quotas(text: str) -> None:
    with pytest.raises(click.UsageError, match="is not a valid quota"):
        _parsed("producer_byte_rate", text)


def test_only_what_is_there_can_be_deleted() -> None:
    quotas = {(("client-id", "reporting"),): {"consumer_byte_rate": 1.0}}
    _check_there(quotas, (("client-id", "reporting"),), ())
    _check_there(quotas, (("client-id", "reporting"),), ("consumer_byte_rate",))
    with pytest.raises(Failure, match=r"^client-id reportin has no quotas; did you mean client-id reporting\?$"):
        _check_there(quotas, (("client-id", "reportin"),), ())
    with pytest.raises(Failure, match=r"^client-id reporting has no request_percentage to delete$"):
        _check_there(quotas, (("client-id", "reporting"),), ("consumer_byte_rate", "request_percentage"))

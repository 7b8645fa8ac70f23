"""The options of a registry, and what is wrong with them."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import SchemaError
from barnabas.schemas.settings import RegistrySettings


def test_options():
    found = RegistrySettings.of(
        {
            "url": "http://one:8081/, https://a:b@two/api",
            "timeout": "2.5",
            "max.retries": 1,
            "retries.wait.ms": 10,
            "retries.max.wait.ms": 20,
            "cache.latest.ttl.sec": 60,
        }
    )
    assert found == RegistrySettings(
        ("http://one:8081", "https://two/api"), "Basic YTpi", None, None, None, None, 2.5, 1, 10, 20, 60.0
    )
    assert RegistrySettings.of("http://one") == RegistrySettings(("http://one",))
    secret = RegistrySettings.of(
        {"url": "http://one", "basic.auth.user.info": "name:password", "ssl.key.password": "word"}
    )
    assert "word" not in repr(secret)
    assert "Basic" not in repr(secret)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "a schema registry needs an address, for example http://localhost:8081"),
        ("localhost:8081", "'localhost:8081' is not the address of a schema registry: write http://HOST:PORT"),
        ("http://a:secret@h:x", "'h:x' is not the address of a schema registry: write http://HOST:PORT"),
        ({"url": "http://h", "max.retrys": 1}, "a schema registry has no option 'max.retrys'; did you mean max.retries?"),
        ({"url": "http://h", "basic.auth.user.info": "x"}, "the registry's option basic.auth.user.info must be NAME:PASSWORD"),
        (
            {"url": "http://a:b@h", "bearer.auth.token": "x"},
            "give a schema registry one of basic.auth.user.info, bearer.auth.token and credentials in its address",
        ),
        ("http://a:b@h,http://c:d@i", "the addresses of a schema registry have different credentials: give one basic.auth.user.info"),
        ({"url": "http://h", "timeout": "soon"}, "the registry's option timeout must be a number, not 'soon'"),
        ({"url": "http://h", "timeout": 0}, "the registry's option timeout must be positive"),
        ({"url": "http://h", "max.retries": -1}, "the registry's option max.retries must not be negative"),
        ({"url": "http://h", "ssl.key.location": "k"}, "the registry's option ssl.key.location needs ssl.certificate.location"),
    ],
    ids=str,
)  # fmt: skip
def test_options_that_do_not_do(given, error):
    with pytest.raises(SchemaError) as refused:
        RegistrySettings.of(given)
    assert str(refused.value) == error

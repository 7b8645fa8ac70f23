"""Templates escape everything, and a name that is missing is an error."""

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from barnabas.console.rendering import TEMPLATES, Templates, environment


def test_values_are_escaped() -> None:
    assert environment().from_string("{{ name }}").render(name="<b \"'&") == "&lt;b &#34;&#39;&amp;"


def test_no_template_turns_it_off() -> None:
    for path in Path(TEMPLATES).glob("*.html"):
        assert not any(word in path.read_text() for word in ("|safe", "| safe", "autoescape", "Markup")), path


def test_a_missing_name() -> None:
    with pytest.raises(UndefinedError):
        Templates().html("clusters")

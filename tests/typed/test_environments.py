"""What a page tells its reader to install."""

from tests.typed.environments import ROOT, extras_of, packages_of


def test_a_page_names_extras_in_commands_and_in_sentences() -> None:
    assert extras_of('pip install ".[cli,sql]"\n') == ("cli", "sql")
    assert extras_of("the extra `top`, the [extra](install.md#extras) `read`, the extra [`security`](install.md)") == (
        "cli",
        "read",
        "security",
        "top",
    )
    assert extras_of("the packages of the\nextra `sql`") == ("cli", "sql")
    assert extras_of("nothing") == ("cli",)


def test_a_page_names_packages_beside_barnabas() -> None:
    assert packages_of('pip install ".[cli]" pytest\npip install ".[cli]"\n') == ("pytest",)


def test_the_extras_of_the_pages_exist() -> None:
    declared = (ROOT / "pyproject.toml").read_text()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for extra in extras_of(page.read_text()):
            assert f"\n{extra} = [" in declared, (page.name, extra)

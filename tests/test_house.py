"""The house is tidy: what CONTRIBUTING asks of the code's form, checked.

Ratchets are counts of what is still missing. They only go down: when one is too high the test says so, and the number here is lowered.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from barnabas.api import APIS
from barnabas.protocol.api_keys import api

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "barnabas"
MODULES = sorted(path for path in (ROOT / "src").rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))
CORE_ROOMS = (
    "api", "replication", "log", "records", "coordinator", "group", "transaction", "share", "quota", "telemetry", "metrics",
    "metadata", "raft", "protocol",
)  # fmt: skip

MODULES_WITHOUT_A_TEST_MODULE = 122
IMPORTS_WITHIN_FUNCTIONS = 73
SLEEPS_OUTSIDE_A_LOOP = 8
REACHES_INTO_PRIVATE_NAMES = 108
CADENCE = {
    r'((?<=""")|(?<=# ))What': 17,
    r"the ones? that": 5,
    r"nobody": 18,
    r"perhaps": 6,
    r"(?<!--)besides?": 24,
    r"at once": 25,
    r"of what": 10,
    r"(those|everybody|for|of) who": 4,
}
"""Phrases that hide the actor or the thing, and how often the source may still have them. Write the noun: "no leader", "the last one"."""
PROTOCOLS = 54
ANY_IN_THE_API = 20
PROSE_WIDTH = 120
MADE_PAGES = ("benchmarks.md", "compatibility.md", "configuration.md", "dashboards.md", "reference.md")
LONGEST_MODULE = 565
LONGEST_FUNCTION = 80

THIRD_PERSON = re.compile(
    r"(Adds|Builds|Checks|Decodes|Encodes|Finds|Gives|Holds|Keeps|Makes|Reads|Removes|Returns|Runs|Says|Sends|Takes|Tells|Turns|"
    r"Writes|Yields|Whether)\b"
)
NOT_ENGLISH = re.compile(
    r"\b(whoever|anew|has it not|have it not|is no number|is told|are told|shall the)\b", re.IGNORECASE
)
NOT_PASSED_IN = re.compile(
    r"time\.(time|monotonic|perf_counter)(_ns)?|time\.sleep|os\.urandom|secrets\.\w+|uuid\.uuid[14]|"
    r"(datetime\.)?datetime\.(now|utcnow|today)|random\.(random|choice|shuffle|randint|sample|seed)"
)
PLANE = re.compile(
    r"\((control|data|both) planes?\b|\b(Control|Data) plane(, pure)?\.|^Plane:|\bShell( plane)?\.", re.MULTILINE
)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT / "src"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


@cache
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in nodes_of(path) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def test_every_module_says_what_it_is() -> None:
    assert [name_of(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def test_no_module_names_its_plane() -> None:
    """The room says it."""
    named = [name_of(path) for path in MODULES if PLANE.search(ast.get_docstring(tree_of(path)) or "")]
    assert named == []


@pytest.mark.parametrize("key", list(APIS), ids=lambda key: APIS[key].module)
def test_the_header_of_a_handler_names_its_api_and_versions(key: int) -> None:
    served = APIS[key]
    first, last = served.min_served, served.max_version
    versions = f"version {last}" if first == last else f"versions {first}-{last}"
    header = ast.get_docstring(tree_of(SOURCE / "api" / f"{served.module}.py")) or ""
    assert header.startswith(f"{api(key).name} (API key {key}, {versions})")


def test_docstrings_are_in_the_imperative() -> None:
    descriptive = [
        f"{name_of(path)}:{function.name}"
        for path in MODULES
        for function in functions(path)
        if THIRD_PERSON.match(ast.get_docstring(function) or "")
        and not any(isinstance(one, ast.Name) and "property" in one.id for one in function.decorator_list)
    ]
    assert descriptive == []


def test_reprs_have_one_form() -> None:
    other = []
    for path in MODULES:
        for function in functions(path):
            returned = function.body[-1]
            if function.name != "__repr__" or not isinstance(returned, ast.Return):
                continue
            text = ast.unparse(returned.value) if returned.value is not None else ""
            if re.match(r"""f['"][A-Za-z]""", text):
                other.append(f"{name_of(path)}: {text}")
    assert other == []


def test_loggers_have_one_name() -> None:
    found = [re.findall(r"^(\w+) = logging\.getLogger\(__name__\)", path.read_text(), re.MULTILINE) for path in MODULES]
    assert {name for names in found for name in names} == {"logger"}


def test_there_are_no_banners_and_no_other_markup() -> None:
    marked = [
        name_of(path)
        for path in MODULES
        if re.search(r"^\s*#.*(---|===)|``|:(class|meth|func|mod):`", path.read_text(), re.MULTILINE)
    ]
    assert marked == []


def test_the_english_is_plain() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in MODULES
        if NOT_ENGLISH.search(path.read_text())
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NOT_ENGLISH.search(line)
    ]
    assert found == []


def test_phrases_without_an_actor_get_fewer() -> None:
    text = "\n".join(path.read_text() for path in MODULES)
    found = {phrase: len(re.findall(rf"\b{phrase}\b", text)) for phrase in CADENCE}
    assert {phrase: count for phrase, count in found.items() if count > CADENCE[phrase]} == {}


def test_modules_and_functions_stay_small() -> None:
    long_modules = {
        name_of(path): length for path in MODULES if (length := len(path.read_text().splitlines())) > LONGEST_MODULE
    }
    long_functions = {
        f"{name_of(path)}:{function.name}": length
        for path in MODULES
        for function in functions(path)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > LONGEST_FUNCTION
    }
    assert long_modules == {}
    assert long_functions == {}


def test_modules_have_a_test_module() -> None:
    """`src/barnabas/log/flusher.py` has `tests/log/test_flusher.py`; handlers of the API are tested by `tests/api` and many by scenario."""
    missing = [
        name_of(path)
        for path in MODULES
        if path.is_relative_to(SOURCE)
        and path.stem not in ("__init__", "__main__")
        and not (ROOT / "tests" / path.parent.relative_to(SOURCE) / f"test_{path.stem}.py").exists()
    ]
    assert len(missing) == MODULES_WITHOUT_A_TEST_MODULE, missing


def test_imports_are_at_the_top() -> None:
    """Within functions only at the doors: handlers, controller managers, shard factories, what a command needs alone, TLS and logins."""
    within = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("barnabas")
    ]
    assert len(set(within)) == IMPORTS_WITHIN_FUNCTIONS, within


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path, modules: set[str]) -> set[str]:
    """Return the modules that one names in its imports, anywhere in it; `from package import module` names the module alone."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in inner.values()}
    return (found & modules) - {module_of(path)}


def test_no_modules_import_each_other() -> None:
    """No circle of any length; what is imported for types alone, or within a function, counts too: one cannot be read without the other."""
    modules = {module_of(path) for path in MODULES}
    imports = {module_of(path): imported(path, modules) for path in MODULES}
    # Take away what imports nothing that is left, or is imported by nothing that is left, until only circles and what joins them is left.
    while True:
        used = {name for needs in imports.values() for name in needs}
        left = {name: needs & imports.keys() for name, needs in imports.items() if name in used}
        left = {name: needs for name, needs in left.items() if needs}
        if left == imports:
            break
        imports = left
    assert {name: sorted(needs) for name, needs in imports.items()} == {}


def test_protocols_are_seams() -> None:
    """A Protocol has two implementations, one of them perhaps in the tests, or stands for a room that its own must not import."""
    found = [
        f"{name_of(path)}:{node.name}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and any(re.match(r"Protocol\b", ast.unparse(base)) for base in node.bases)
    ]
    assert len(found) == PROTOCOLS, found


def test_handlers_have_types() -> None:
    """`Any` stands where one function serves messages of many classes."""
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in sorted((SOURCE / "api").rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert len(found) == ANY_IN_THE_API, found


def test_the_core_reads_no_clock_and_makes_no_luck_of_its_own() -> None:
    """Decision 3. The process that compacts is not of the core: it paces itself, and is not part of a simulated run."""
    own = {"log/cleaner.py", "log/cleaner_process.py"}
    read = [
        f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}"
        for room in CORE_ROOMS
        for path in sorted((SOURCE / room).rglob("*.py"))
        if str(path.relative_to(SOURCE)) not in own
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and NOT_PASSED_IN.fullmatch(ast.unparse(node))
    ]
    assert read == []


def test_a_test_sleeps_only_between_two_looks() -> None:
    """A sleep stands in a loop that looks again for what it waits for."""
    alone = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in TESTS
        if "time.sleep(" in path.read_text()
        for call in nodes_of(path)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "time.sleep"
        if not any(isinstance(loop, (ast.While, ast.For)) and call in ast.walk(loop) for loop in nodes_of(path))
    ]
    assert len(alone) == SLEEPS_OUTSIDE_A_LOOP, alone


def test_tests_do_not_reach_into_other_objects() -> None:
    """An attribute that begins with one underscore belongs to `self` or `cls`; NamedTuples and librdkafka's codes have public ones."""
    public = re.compile(r".*\._(replace|asdict|fields|make)|.*(Kafka|Library)Error\._[A-Z_]+|os\._exit")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {text}"
        for path in TESTS
        if re.search(r"\._[^_]", path.read_text())  # Most modules need not be parsed.
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)
        if not re.match(r"(self|cls|super\(.*\))\._\w+$", text := ast.unparse(node))
        if not public.fullmatch(text)
    ]
    assert len(found) == REACHES_INTO_PRIVATE_NAMES, found


def test_architecture_names_what_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {room for room in rooms if f"| `{room}/`" not in text} == set()
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]*)`", text)
    absent = [
        name
        for name in named
        if not any(
            (base / name).is_dir() or (base / f"{name}.py").exists()
            for base in (SOURCE, SOURCE / "group", ROOT, ROOT / "src")
        )
    ]
    assert absent == []


def test_the_map_of_the_stages_names_what_is_there() -> None:
    text = (ROOT / "tests" / "README.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+\w+)`", text))
    tests = ROOT / "tests"
    assert {name for name in named if not ((tests / name).is_dir() or (tests / f"{name}.py").exists())} == set()
    classes = {name for path in TESTS for name in re.findall(r"^ *class (\w+)", path.read_text(), re.MULTILINE)}
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", text)) - classes == set()


def test_fragments_reach_the_changelog() -> None:
    kinds = {"feature", "bugfix", "doc", "removal", "misc"}
    fragments = [path.name for path in (ROOT / "changes").glob("*.md")]
    assert [name for name in fragments if not re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(kinds)})\.md", name)] == []


def test_prose_has_one_width() -> None:
    """Pages that are written by hand; tables and code may be wider."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
    pages += [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name not in MADE_PAGES]
    pages += sorted((ROOT / "changes").glob("*.md"))
    pages += [ROOT / "tests" / "README.md", ROOT / "SECURITY.md", ROOT / "CODE_OF_CONDUCT.md"]
    wide = []
    for page in pages:
        is_code = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            is_code ^= line.startswith("```")
            if len(line) > PROSE_WIDTH and not is_code and not line.startswith(("|", "    ", "<!--")):
                wide.append(f"{page.relative_to(ROOT)}:{number}")
    assert wide == []

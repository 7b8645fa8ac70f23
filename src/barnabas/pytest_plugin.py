"""Pytest fixtures: a real broker inside a test.

    def test_orders(barnabas):
        producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers})

- `barnabas` is a broker, reset before each test that asks for it. Brokers live for the session, in the process that runs the test,
  so each worker of pytest-xdist has its own.
- `barnabas_config` returns the broker's settings. A test suite overrides it for a module, a class or a test; each different set of
  settings gets a broker of its own, which starts when it is first needed.
- `barnabas_broker` is the same broker without a reset, for fixtures that live longer than a test.
- `barnabas_registry` is the address of a schema registry of that broker, reset with it.
- `barnabas_cluster` is a cluster of three processes, also reset before each test: its faults are over then, and its nodes run.
  `barnabas_cluster_config` returns the settings of its nodes, `barnabas_cluster_brokers` their number.
- `barnabas_security` returns TLS, logins and ACLs of both, as the arguments `security`, `users` and `acls` of `barnabas.Broker`.
- A mistake in the settings is one sentence that names the fixture `barnabas_config` and where it is.
- The report of a failed test has a section with the broker's log lines of that test, and one for each node of a cluster. Pytest's own
  section for log lines has the others.

Pytest imports this module in every run. The package imports the broker when a fixture first names it.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import barnabas as package

if TYPE_CHECKING:
    from pluggy import Result

    from barnabas.embedded.broker import Broker
    from barnabas.embedded.cluster import Cluster

__tracebackhide__ = True  # a report that shows these frames shows nothing of the user's

_MAX_LINES = 2_000


class BrokerLog(logging.Handler):
    """Keeps what the loggers of `barnabas` write, from INFO on, and changes nothing for other handlers but one.

    The loggers pass on what their level admits, which is WARNING and above unless a test says otherwise. While this handler is
    installed they pass everything to it, and it passes on to the root logger's handlers only what they would have got. Pytest's
    handler for the section "Captured log" gets nothing: a report shows each line once.

    It is installed for a phase of a test, after pytest's own handlers: pytest adds those to each logger that does not propagate
    (from 9.1), and they would then get the lines twice.
    """

    EVERYTHING = 1
    """A level that no test uses: if the logger has another level, a test has set it."""

    def __init__(self) -> None:
        super().__init__(self.EVERYTHING)
        self.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
        self._logger = logging.getLogger("barnabas")
        self._did_propagate = True
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self.not_for: logging.Handler | None = None
        """Pytest's handler for the section "Captured log"; None if pytest has none."""

    def install(self) -> None:
        if self not in self._logger.handlers:
            self._did_propagate = self._logger.propagate
            self._logger.addHandler(self)
            self._logger.propagate = False
            if self._logger.level == logging.NOTSET:
                self._logger.setLevel(self.EVERYTHING)

    def uninstall(self) -> None:
        if self in self._logger.handlers:
            self._logger.removeHandler(self)
            self._logger.propagate = self._did_propagate
            if self._logger.level == self.EVERYTHING:
                self._logger.setLevel(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        passed_on = self._did_propagate and record.levelno >= self._level_without(record.name)
        if passed_on or record.levelno >= logging.INFO:
            self._lines.append(self.format(record))
        if passed_on:
            for handler in logging.getLogger().handlers:
                if handler is not self.not_for and record.levelno >= handler.level:
                    handler.handle(record)

    def _level_without(self, name: str) -> int:
        """Return the level of a logger if this handler were not installed."""
        level = logging.getLogger(name).getEffectiveLevel()
        return logging.getLogger().getEffectiveLevel() if level == self.EVERYTHING else level

    def take(self) -> str:
        """Return the lines since the last call, and forget them."""
        lines = list(self._lines)
        self._lines.clear()
        return "\n".join(lines)


_log = BrokerLog()


class NodeLogs:
    """The log files of the nodes of running clusters, and how far they are read."""

    def __init__(self) -> None:
        self.clusters: list[Cluster] = []
        self._ends: dict[Path, int] = {}

    def take(self) -> dict[int, str]:
        """Return what each node has logged since the last call, the last lines of it; nodes of several clusters together."""
        taken: dict[int, list[str]] = {}
        for cluster in self.clusters:
            for node in cluster.nodes if cluster.is_running else ():
                path = Path(cluster.data_dir) / f"node-{node}" / "node.log"
                with path.open("rb") as log:
                    log.seek(self._ends.get(path, 0))
                    lines = log.read().decode(errors="replace").splitlines()
                    self._ends[path] = log.tell()
                taken.setdefault(node, []).extend(lines[-_MAX_LINES:])
        return {node: "\n".join(lines) for node, lines in taken.items() if lines}


_node_logs = NodeLogs()


def _with_log(item: pytest.Item, phase: str) -> Generator[None, object, None]:
    _log.install()
    _log.take()
    _node_logs.take()
    yield
    _log.uninstall()
    if lines := _log.take():
        item.add_report_section(phase, "barnabas log", lines)
    for node, lines in _node_logs.take().items():
        item.add_report_section(phase, f"barnabas node {node} log", lines)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, None]:
    yield from _with_log(item, "setup")


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, None]:
    yield from _with_log(item, "call")


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, None]:
    yield from _with_log(item, "teardown")


def pytest_sessionstart(session: pytest.Session) -> None:
    _log.not_for = getattr(session.config.pluginmanager.get_plugin("logging-plugin"), "report_handler", None)


_places: dict[int, str] = {}
"""Where the fixture `barnabas_config` of a live value is defined, by the value's identity: `conftest.py:12: `."""


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, Result[object], None]:
    outcome = yield
    if fixturedef.argname in ("barnabas_config", "barnabas_cluster_config") and outcome.exception is None:
        key = id(outcome.get_result())
        _places[key] = _place(fixturedef, request)
        fixturedef.addfinalizer(lambda: _places.pop(key, None))


def _place(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> str:
    """Return the file and line of a fixture; of the test if the test's parameters take the fixture's place."""
    code = getattr(fixturedef.func, "__code__", None)
    if code is not None and fixturedef.argname in code.co_name:
        path, line = code.co_filename, code.co_firstlineno
    elif isinstance(request.node, pytest.Item):
        path, line = str(request.node.path), (request.node.location[1] or 0) + 1
    else:
        return ""
    return f"{os.path.relpath(path, request.config.invocation_params.dir)}:{line}: "


def _key(settings: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    """Return settings as a key; equal ones share a broker."""
    if not isinstance(settings, Mapping):
        kind = "None" if settings is None else f"a {type(settings).__name__}"
        raise TypeError(
            f'it returns {kind}: return a mapping of settings, such as {{"num.partitions": 4}}, or {{}} for the defaults'
        )
    return frozenset((name, str(value)) for name, value in settings.items())


_Key = tuple[frozenset[tuple[str, str]], str]


def _secured_key(settings: Mapping[str, object], security: Mapping[str, Any]) -> _Key:
    """Return settings and security as a key; equal ones share a broker."""
    if not isinstance(security, Mapping) or not security.keys() <= {"security", "users", "acls"}:
        raise TypeError(
            'the fixture barnabas_security returns {"security": …, "users": …, "acls": …}, or {} for plain text'
        )
    return _key(settings), repr(sorted(security.items()))


def _or_security(security: object) -> str:
    return " or barnabas_security" if security else ""


def _fail(mistake: Exception, settings: object, fixture: str) -> NoReturn:
    """Fail the test with one sentence about the settings that a fixture returned."""
    where = _places.get(id(settings), "")
    # Without a traceback: it has only frames of this module, of pytest and of its plugins. One frame that is not hidden keeps
    # pytest from saying that all are.
    __tracebackhide__ = False
    pytest.fail(f"{type(mistake).__name__}: {where}the fixture {fixture}: {mistake}", pytrace=False)


class _Brokers:
    """The session's brokers: one for each set of settings."""

    def __init__(self) -> None:
        self._by_settings: dict[_Key, Broker] = {}

    def with_settings(self, settings: Mapping[str, object], security: Mapping[str, Any]) -> Broker:
        """Return a running broker; a test may have stopped it. A mistake in the settings fails the test."""
        try:
            key = _secured_key(settings, security)
            broker = self._by_settings.get(key)
            if broker is None:
                broker = self._by_settings[key] = package.Broker(config=settings, **security)
            if not broker.is_running:
                broker.stop()
                broker.start()
            return broker
        except (package.ConfigError, package.CannotStart, TypeError, ImportError) as mistake:
            found = mistake
        _fail(found, settings, "barnabas_config" + _or_security(security))

    def stop(self) -> None:
        for broker in self._by_settings.values():
            broker.stop()


class _Clusters:
    """The session's clusters: one for each size and set of settings."""

    def __init__(self) -> None:
        self._by_settings: dict[tuple[int, _Key], Cluster] = {}

    def with_settings(self, brokers: int, settings: Mapping[str, object], security: Mapping[str, Any]) -> Cluster:
        """Return a running cluster; nodes of it may be down. A mistake in the settings fails the test."""
        try:
            key = (brokers, _secured_key(settings, security))
            cluster = self._by_settings.get(key)
            if cluster is None:
                cluster = self._by_settings[key] = package.Cluster(brokers, config=settings, **security)
                _node_logs.clusters.append(cluster)
            if not cluster.is_running:
                cluster.start()
            return cluster
        except (package.ConfigError, package.CannotStart, TypeError, ValueError, ImportError) as mistake:
            found = mistake
        _fail(found, settings, "barnabas_cluster_config" + _or_security(security))

    def stop(self) -> None:
        for cluster in self._by_settings.values():
            cluster.stop()
            _node_logs.clusters.remove(cluster)


@pytest.fixture(scope="session")
def _barnabas_brokers() -> Iterator[_Brokers]:
    brokers = _Brokers()
    yield brokers
    brokers.stop()


@pytest.fixture(scope="session")
def barnabas_config() -> Mapping[str, object]:
    """Return the broker's settings, by Kafka's names: override this fixture, with any scope."""
    return {}


@pytest.fixture(scope="session")
def barnabas_security() -> Mapping[str, Any]:
    """Return `security`, `users` and `acls` of brokers and clusters: override this fixture, with any scope."""
    return {}


@pytest.fixture(scope="session")
def barnabas_broker(
    _barnabas_brokers: _Brokers, barnabas_config: Mapping[str, object], barnabas_security: Mapping[str, Any]
) -> Broker:
    """Return the session's broker without a reset, for fixtures that live longer than a test."""
    return _barnabas_brokers.with_settings(barnabas_config, barnabas_security)


@pytest.fixture
def barnabas(
    _barnabas_brokers: _Brokers, barnabas_config: Mapping[str, object], barnabas_security: Mapping[str, Any]
) -> Broker:
    """Return an empty broker: no topics, no groups. Its settings are those of the fixture `barnabas_config`."""
    broker = _barnabas_brokers.with_settings(barnabas_config, barnabas_security)
    broker.reset()
    return broker


@pytest.fixture
def barnabas_registry(barnabas: Broker) -> Iterator[str]:
    """Return the address of a schema registry of the fixture `barnabas`, without schemas; it needs the extra `registry`."""
    yield barnabas.schema_registry_url
    # Its topic would be in the way of a test that asks for no registry.
    barnabas.stop_schema_registry()


@pytest.fixture(scope="session")
def _barnabas_clusters() -> Iterator[_Clusters]:
    clusters = _Clusters()
    yield clusters
    clusters.stop()


@pytest.fixture(scope="session")
def barnabas_cluster_config() -> Mapping[str, object]:
    """Return the settings of a cluster's nodes, by Kafka's names: override this fixture, with any scope."""
    return {}


@pytest.fixture(scope="session")
def barnabas_cluster_brokers() -> int:
    """Return how many nodes a cluster has: override this fixture, with any scope."""
    return 3


@pytest.fixture
def barnabas_cluster(
    _barnabas_clusters: _Clusters,
    barnabas_cluster_brokers: int,
    barnabas_cluster_config: Mapping[str, object],
    barnabas_security: Mapping[str, Any],
) -> Cluster:
    """Return an empty cluster of processes without faults. Its nodes have the settings of `barnabas_cluster_config`."""
    cluster = _barnabas_clusters.with_settings(barnabas_cluster_brokers, barnabas_cluster_config, barnabas_security)
    cluster.reset()
    return cluster

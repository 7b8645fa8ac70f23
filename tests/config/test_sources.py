"""The file, the environment, `--set` and flags: who wins, and what is said of names that nobody knows."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.config.config import ConfigError, Listener
from barnabas.config.sources import ConfigSources, UsageMistake

PROPERTIES = Path(__file__).parent / "properties"


def written(folder: Path, text: str) -> str:
    path = folder / "server.properties"
    path.write_text(text)
    return str(path)


def test_later_sources_win(tmp_path: Path) -> None:
    file = written(tmp_path, "num.partitions=2\nnode.id=2\nlog.dirs=file\nlog.retention.hours=2\n")
    environ = {"KAFKA_NODE_ID": "3", "KAFKA_LOG_DIRS": "environment", "KAFKA_LOG_RETENTION_HOURS": "3"}
    sources = ConfigSources(file, environ)
    sources.add_settings(["log.dirs=set", "log.retention.hours = 4 "])
    sources.properties["log.dirs"] = "flag"
    config = sources.config()
    assert (config.num_partitions, config.node_id, config.log_dirs) == (2, 3, ("flag",))
    assert config.value("log.retention.hours") == 4


def test_a_mistyped_setting_is_an_error_that_names_the_nearest() -> None:
    sources = ConfigSources(None, {})
    with pytest.raises(ConfigError) as caught:
        sources.add_settings(["log.retention.hour=3"])
    assert (
        str(caught.value)
        == "--set log.retention.hour: there is no setting log.retention.hour; did you mean log.retention.hours?"
    )
    sources.add_settings(["listener.name.internal.max.connections=3", "allow.everyone.if.no.acl.found=true"])


@pytest.mark.parametrize("setting", ["nonsense", "=3", " = "])
def test_a_setting_without_a_name_or_a_value_is_an_error(setting: str) -> None:
    with pytest.raises(ConfigError, match="must be KEY=VALUE"):
        ConfigSources(None, {}).add_settings([setting])


def test_what_is_ignored_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "log.dirs=x\nlog.retention.hour=3\nodd\\u001b[31m=1\nnum.io.threads=16\nlog.preallocate=true\nnum.network.threads=3\n"
    path = written(tmp_path, f"{text}this is a stray line\n")
    sources = ConfigSources(path, {"KAFKA_NUM_PARTITION": "3", "KAFKA_PORT": "tcp://10.0.0.1:9092"})
    with caplog.at_level(logging.INFO):
        sources.log_ignored(sources.config())
    assert [(record.levelname, record.message) for record in caplog.records] == [
        (
            "WARNING",
            f"{path}, line 2: log.retention.hour is ignored: there is no setting log.retention.hour; did you mean log.retention.hours?",
        ),
        ("WARNING", "KAFKA_NUM_PARTITION is ignored: there is no setting num.partition; did you mean num.partitions?"),
        ("WARNING", f"{path}, line 3: odd\\x1b[31m is ignored: there is no setting odd\\x1b[31m"),
        ("WARNING", "KAFKA_PORT is ignored: there is no setting port"),
        ("WARNING", f"{path}, line 7: this is ignored: there is no setting this"),
        ("INFO", "These settings have no effect in barnabas: log.preallocate, num.io.threads"),
    ]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(ConfigError) as caught:
        ConfigSources(str(missing), {})
    assert str(caught.value) == f"cannot read {missing}: no such file or directory"
    with pytest.raises(ConfigError, match=r"it is a directory \(is it --data-dir"):
        ConfigSources(str(tmp_path), {})
    with pytest.raises(ConfigError, match=r"line 1: \\u without four hexadecimal digits"):
        ConfigSources(written(tmp_path, "log.dirs=C:\\users"), {})


def test_a_directory_is_required() -> None:
    with pytest.raises(ConfigError, match=r"no data directory \(pass --data-dir DIR"):
        ConfigSources(None, {}).config()


def test_the_cluster_id_counts_until_the_directory_is_formatted(tmp_path: Path) -> None:
    environ = {"KAFKA_LOG_DIRS": str(tmp_path), "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}
    assert ConfigSources(None, environ).config().cluster_id == "4L6g3nShT-eMCtK--X86sw"
    (tmp_path / "meta.properties").write_text("")
    assert ConfigSources(None, environ).config().cluster_id is None


def test_listeners_of_flags(tmp_path: Path) -> None:
    sources = ConfigSources(None, {"KAFKA_LOG_DIRS": "x"})
    assert sources.config().listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    sources.add_listeners(["127.0.0.1:0", "[::1]:9094", "NAMED://h:1"])
    sources.add_settings(["listener.security.protocol.map=NAMED:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT2:PLAINTEXT"])
    assert [listener.name for listener in sources.config().listeners] == ["PLAINTEXT", "PLAINTEXT2", "NAMED"]
    # The file's map need not know the names that flags get.
    text = "log.dirs=x\nlisteners=OUT://:9092\nlistener.security.protocol.map=OUT:PLAINTEXT\n"
    sources = ConfigSources(written(tmp_path, text), {})
    sources.add_listeners(["127.0.0.1:0", "127.0.0.1:1"])
    assert [listener.name for listener in sources.config().listeners] == ["PLAINTEXT", "PLAINTEXT2"]
    for wrong in ("localhost", "localhost:x", "localhost:99999", "localhost:²", "PLAINTEXT://FOO", "PLAINTEXT://h:FOO"):
        with pytest.raises(ConfigError, match=f"--listen {wrong}: must be HOST:PORT"):
            sources.add_listeners([wrong])


def test_a_flag_does_not_replace_listeners_that_were_typed_too() -> None:
    sources = ConfigSources(None, {})
    sources.add_settings(["listeners=SASL_SSL://:9093"])
    with pytest.raises(UsageMistake, match="--listen and --set listeners=SASL_SSL://:9093: pass one of the two"):
        sources.add_listeners(["127.0.0.1:0"])
    sources.add_listeners([])


def test_a_flag_does_not_replace_a_listener_with_protection(tmp_path: Path) -> None:
    text = "listeners=PLAINTEXT://:9092,OUT://:9093\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUT:SASL_SSL\n"
    path = written(tmp_path, text)
    sources = ConfigSources(path, {})
    with pytest.raises(UsageMistake) as caught:
        sources.add_listeners(["127.0.0.1:0"])
    assert str(caught.value) == (
        f"--listen would replace the listener OUT with SASL_SSL of {path}, line 1: listeners by one without protection: "
        "remove one of the two"
    )


def test_an_error_names_the_variable_that_was_given_and_not_what_is_made_of_it() -> None:
    sources = ConfigSources(None, {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT:FOO", "KAFKA_LOG_DIRS": "x"})
    assert sources.properties["listeners"] == "PLAINTEXT:FOO"
    with pytest.raises(ConfigError, match=r"^Invalid value PLAINTEXT:FOO for configuration advertised\.listeners: use"):
        sources.config()


def test_the_environment_of_apache_kafkas_compose_file() -> None:
    environ = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
        "KAFKA_LISTENERS": "CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_LOG_DIRS": "/no/such/directory",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
    }
    config = ConfigSources(None, environ).config()
    assert config.listeners == (Listener("PLAINTEXT_HOST", "", 9092), Listener("PLAINTEXT", "", 19092))
    assert config.advertised_listeners is not None
    assert (config.cluster_id, config.unknown, config.without_effect) == ("4L6g3nShT-eMCtK--X86sw", (), ())
    del environ["KAFKA_LISTENERS"]
    assert ConfigSources(None, environ).config().listeners == (
        Listener("PLAINTEXT_HOST", "0.0.0.0", 9092),
        Listener("PLAINTEXT", "0.0.0.0", 19092),
    )
    environ |= {"KAFKA_SASL_ENABLED_MECHANISMS": "PLAIN", "KAFKA_SSL_KEYSTORE_FILENAME": "kafka01.keystore.jks"}
    with pytest.raises(ConfigError, match=r"^ssl\.keystore\.filename=kafka01.*: barnabas does not know how"):
        ConfigSources(None, environ).config()


@pytest.mark.parametrize(
    ("file", "unknown", "without_effect"),
    [
        ("kafka-4.properties", (), ("num.recovery.threads.per.data.dir",)),
        ("kafka-3-kraft.properties", (), ("num.recovery.threads.per.data.dir",)),
        (
            "hand-made.properties",
            ("inter.broker.protocol.version", "log.retention.hour", "zookeeper.connect"),
            ("log.preallocate", "num.io.threads"),
        ),
    ],
)
def test_files_as_people_have_them(file: str, unknown: tuple[str, ...], without_effect: tuple[str, ...]) -> None:
    config = ConfigSources(str(PROPERTIES / file), {}).config()
    assert (config.unknown, config.without_effect) == (unknown, without_effect)
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.listeners[-1].port == 9092
    assert [listener.port % 10_000 for listener in config.controller_listeners] in ([9093], [29093 % 10_000])


@pytest.mark.parametrize(
    ("file", "role", "node_id", "listeners"),
    [
        ("kafka-4-broker.properties", "broker", 2, [("PLAINTEXT", "localhost", 9092)]),
        ("kafka-4-controller.properties", "controller", 1, [("CONTROLLER", "", 9093)]),
    ],
)
def test_the_files_for_one_role(file: str, role: str, node_id: int, listeners: list[tuple[str, str, int]]) -> None:
    config = ConfigSources(str(PROPERTIES / file), {}).config()
    assert (config.process_roles, config.node_id, config.unknown) == ((role,), node_id, ())
    assert [each[:3] for each in (*config.listeners, *config.controller_listeners)] == listeners
    assert (config.is_alone, config.quorum_bootstrap_servers) == (False, (("localhost", 9093),))


def test_a_file_may_have_its_values_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text(f"data={tmp_path}/data\nusers=User:admin\n")
    (tmp_path / "data").mkdir()
    file = tmp_path / "server.properties"
    file.write_text(
        "config.providers=file,env\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        f"log.dirs=${{file:{tmp_path}/secrets:data}}\nnode.id=${{env:NODE}}\n"
    )
    environ = {"NODE": "7", "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}
    config = ConfigSources(str(file), environ).config()
    assert (config.log_dirs, config.node_id, config.unknown) == ((f"{tmp_path}/data",), 7, ())
    assert config.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    (tmp_path / "data" / "meta.properties").touch()
    assert ConfigSources(str(file), environ).config().cluster_id is None

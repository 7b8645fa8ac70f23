"""What a Python caller may get wrong with an embedded broker: each mistake is one sentence, in the words of the arguments."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import barnabas
from tests.embedded.own_process import threads_after


def test_a_second_start_says_what_to_do() -> None:
    with barnabas.Broker() as broker:
        with pytest.raises(barnabas.CannotStart) as caught:
            broker.start()
        assert str(caught.value) == (
            f"this broker already runs on {broker.bootstrap_servers}: call stop() first, or make another Broker()"
        )
        broker.create_topic("it-still-runs")


@pytest.mark.parametrize("call", [barnabas.Broker.reset, lambda b: b.create_topic("t"), lambda b: b.port])
def test_a_broker_that_does_not_run_says_so(call: Callable[[barnabas.Broker], object]) -> None:
    broker = barnabas.Broker()
    with pytest.raises(RuntimeError, match=r"^this broker has not started: call start\(\), or use it in a with state"):
        call(broker)
    broker.start().stop()
    with pytest.raises(
        RuntimeError, match=r"^this broker has stopped: call start\(\) again, or use it in a with state"
    ):
        call(broker)


def test_the_port_of_another_broker() -> None:
    with barnabas.Broker() as broker, pytest.raises(barnabas.CannotStart) as caught:
        barnabas.Broker(port=broker.port).start()
    assert str(caught.value).endswith("Address already in use (is another broker running? port=0 picks a free port)")
    assert "('" not in str(caught.value)


def test_the_directory_of_another_broker() -> None:
    with barnabas.Broker() as broker, pytest.raises(barnabas.CannotStart) as caught:
        barnabas.Broker(data_dir=broker.data_dir).start()
    assert str(caught.value).endswith(
        "is in use by another broker (stop that broker, or pass another data_dir=, or none)"
    )


def test_the_directory_of_another_node(tmp_path: Path) -> None:
    with barnabas.Broker(tmp_path):
        pass
    with pytest.raises(barnabas.CannotStart, match=r"\(set node\.id=1, or pass another data_dir=, or none\)$"):
        barnabas.Broker(tmp_path, config={"node.id": 2}).start()


@pytest.mark.parametrize(
    ("config", "port", "sentence"),
    [
        ({}, 70000, "port=70000 is not a valid port: pass 1 to 65535, or 0 for a free one"),
        ({}, -1, "port=-1 is not a valid port: pass 1 to 65535, or 0 for a free one"),
        ({"num_partitions": 4}, 0, "num_partitions is not a setting of the broker; did you mean num.partitions?"),
        ({"teapots": 4}, 0, "teapots is not a setting of the broker"),
        ({"log.dirs": "/tmp/x"}, 0, "log.dirs is not a setting of an embedded broker: pass data_dir="),
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, 9, "listeners and port= both name a port: pass one of them"),
    ],
)
def test_a_mistaken_argument(config: dict[str, object], port: int, sentence: str) -> None:
    with pytest.raises(barnabas.ConfigError) as caught:
        barnabas.Broker(config=config, port=port).start()
    assert str(caught.value) == sentence


def in_a_folder_of_other_files(folder: Path) -> None:
    (folder / "other.txt").touch()
    barnabas.Broker(folder).start()


async def in_async_with(folder: Path) -> None:
    (folder / "other.txt").touch()
    async with barnabas.Broker(folder):
        pass


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (in_a_folder_of_other_files, barnabas.CannotStart),
        (lambda folder: asyncio.run(in_async_with(folder)), barnabas.CannotStart),
        (lambda folder: barnabas.Broker(folder, config={"num.partitions": "x"}).start(), barnabas.ConfigError),
    ],
)
def test_an_error_shows_nothing_of_the_broker(
    call: Callable[[Path], object], error: type[Exception], tmp_path: Path
) -> None:
    """The last frame of barnabas is that of the caller's call; the error has the name that users catch, and no other is beside it."""
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert type(caught.value) is error
    assert f"{error.__module__}.{error.__qualname__}" == f"barnabas.{error.__name__}"
    assert [entry.frame.code.name for entry in caught.traceback if "barnabas" in entry.frame.f_globals["__name__"]] in (
        ["start"],
        ["__aenter__"],
    )
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", ["", "a,b"])
def test_a_directory_that_log_dirs_cannot_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(barnabas.ConfigError, match=rf"^data_dir={name}"):
        barnabas.Broker(name).start()
    assert os.listdir(tmp_path) == []


def test_a_failed_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with barnabas.Broker() as broker:
        for wrong in ({"num.partitions": "many"}, {"listeners": f"PLAINTEXT://127.0.0.1:{broker.port}"}):
            with pytest.raises((barnabas.ConfigError, barnabas.CannotStart)):
                barnabas.Broker(config=wrong).start()
        assert os.listdir(tmp_path) == [os.path.basename(broker.data_dir)]
    assert os.listdir(tmp_path) == []
    wrong = "barnabas.Broker(config={'listeners': 'PLAINTEXT://192.0.2.1:0'}).start()"
    assert threads_after(f"try: {wrong}\nexcept barnabas.CannotStart: pass\nelse: raise AssertionError") == []


def test_settings_are_python_values() -> None:
    values = {"auto.create.topics.enable": False, "num.partitions": 3, "group.consumer.assignors": ["range", "uniform"]}
    with barnabas.Broker(config=values) as broker:
        config = broker._running().config
        assert config.bool_value("auto.create.topics.enable") is False
        assert config.list_value("group.consumer.assignors") == ("range", "uniform")


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_reads_the_address_and_leaves_the_broker_alone() -> None:
    with barnabas.Broker() as broker:
        answer, says = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(says, broker.bootstrap_servers.encode() + b"\n")
                try:
                    broker.reset()
                except RuntimeError as error:
                    os.write(says, str(error).encode())
                broker.stop()
                if broker._remove_folder is not None:
                    broker._remove_folder()  # as the interpreter does at its exit
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        os.close(says)
        os.waitpid(child, 0)
        with os.fdopen(answer) as lines:
            address, sentence = lines.read().split("\n")
        assert address == broker.bootstrap_servers
        assert sentence == (
            f"this broker runs in process {os.getpid()}, and this is a fork of it: use its bootstrap_servers here, and call its"
            " methods there"
        )
        assert os.path.isdir(broker.data_dir)
        broker.create_topic("it-still-runs")


@pytest.mark.parametrize("start", [barnabas.Broker, lambda: barnabas.Broker(config={})])
def test_windows_is_one_sentence(start: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(barnabas.CannotStart, match=r"^the broker needs Linux or macOS; on Windows .* work$"):
        start()

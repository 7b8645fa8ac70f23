"""`barnabas storage`, inside this process: what it prints and its exit codes."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from barnabas.log import meta_properties
from barnabas.log.disk import OsDisk
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.bootstrap import read_bootstrap
from barnabas.process.storage_commands import run_storage
from barnabas.protocol.messages import FeatureLevelRecord, UserScramCredentialRecord
from barnabas.protocol.primitives import uuid_from_str, uuid_to_str
from barnabas.raft.voters import VoterEndpoint, VoterSet
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.security.sasl.scram_keys import ScramCredential, ScramMechanism, credential_of_password

VOTER_1 = "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg"
VOTER_2 = "2@[::1]:9094:MvDxzVmcRsaTz33bUuRU6A"
CLUSTER = "4L6g3nShT-eMCtK--X86sw"
PAIR = f"{VOTER_1},{VOTER_2}"
BOTH = (
    "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
    "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
)
STATIC = BOTH + "controller.quorum.voters=1@localhost:9093,2@localhost:9094\n"
DYNAMIC = BOTH + "controller.quorum.bootstrap.servers=localhost:9093,localhost:9094\n"
BROKER = (
    "process.roles=broker\nnode.id=7\ncontroller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:9092\n"
    "controller.quorum.bootstrap.servers=localhost:9093\n"
)


def written(tmp_path: Path, text: str) -> str:
    """Return the path of a properties file for the directory `data`."""
    file = tmp_path / "server.properties"
    file.write_text(f"{text}log.dirs={tmp_path}/data\n")
    return str(file)


def voters_in(tmp_path: Path) -> VoterSet | None:
    """Return the voters that a formatted directory names, None if it names none."""
    checkpoint = tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    if not checkpoint.exists():
        return None
    records = (parse_control_record(record) for record in iter_records(checkpoint.read_bytes()))
    return next(VoterSet.from_record(r.value) for r in records if r.type is ControlRecordType.KRAFT_VOTERS)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (STATIC, []),
        (STATIC, ["-N"]),
        (STATIC, ["-f", "kraft.version=0"]),
        (DYNAMIC, ["-N"]),
        (BROKER, []),
        (BROKER, ["-N"]),
    ],
)
def test_a_node_of_a_cluster_begins_without_voters(tmp_path: Path, text: str, options: list[str]) -> None:
    assert run_storage(["format", "-t", CLUSTER, "-c", written(tmp_path, text), *options]) == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["bootstrap.checkpoint", "meta.properties"]


def test_a_standalone_controller_is_the_only_voter(tmp_path: Path) -> None:
    text = DYNAMIC + "advertised.listeners=PLAINTEXT://h:9092,CONTROLLER://kafka.internal:19093\n"
    assert run_storage(["format", "-t", CLUSTER, "-c", written(tmp_path, text), "--standalone"]) == 0
    voters = voters_in(tmp_path)
    assert voters is not None
    (voter,) = voters.voters
    assert (voter.id, voter.endpoints) == (1, (VoterEndpoint("CONTROLLER", "kafka.internal", 19093),))
    assert f"directory.id={uuid_to_str(voter.directory_id)}" in (tmp_path / "data" / "meta.properties").read_text()


@pytest.mark.parametrize(("text", "named"), [(DYNAMIC, True), (BROKER, False), (BOTH, True)])
def test_initial_controllers(tmp_path: Path, text: str, named: bool) -> None:
    options = ["-I", PAIR, "-f", "kraft.version=1"]
    assert run_storage(["format", "-t", CLUSTER, "-c", written(tmp_path, text), *options]) == 0
    voters = voters_in(tmp_path)
    assert voters is not None
    assert [(voter.id, *voter.endpoints) for voter in voters.voters] == [
        (1, VoterEndpoint("CONTROLLER", "localhost", 9093)),
        (2, VoterEndpoint("CONTROLLER", "::1", 9094)),
    ]
    assert ("JEXY6aqzQY-32P5TStzaFg" in (tmp_path / "data" / "meta.properties").read_text()) is named


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            STATIC,
            ["-s"],
            "--standalone is for a quorum that can change, but controller.quorum.voters names one that does",
        ),
        (
            STATIC,
            ["-I", PAIR],
            "--initial-controllers is for a quorum that can change, but controller.quorum.voters names",
        ),
        (
            STATIC,
            ["-f", "kraft.version=1"],
            "needs --standalone, --initial-controllers or --no-initial-controllers, with",
        ),
        (BROKER, ["-f", "kraft.version=1"], "--feature kraft.version=1: needs --standalone"),
        (DYNAMIC, [], "needs one of --standalone, --initial-controllers and --no-initial-controllers"),
        (
            DYNAMIC,
            ["-s", "-f", "kraft.version=0"],
            "such a quorum is named by controller.quorum.voters; remove the opt",
        ),
        (BROKER, ["-s"], "--standalone is for controllers, but this node is a broker alone"),
        (STATIC.replace("1@localhost:9093,", ""), [], "names the nodes 2, but not this controller"),
    ],
)
def test_options_that_contradict_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, options: list[str], words: str
) -> None:
    assert run_storage(["format", "-t", CLUSTER, "-c", written(tmp_path, text), *options]) == 1
    printed = capsys.readouterr().err
    assert words in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("text", [STATIC, BROKER])
def test_the_nodes_of_a_cluster_have_one_id(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit) as end:
        run_storage(["format", "-c", written(tmp_path, text)])
    assert end.value.code == 2
    assert "error: --cluster-id is missing: all nodes of a cluster have the same" in capsys.readouterr().err


def test_one_kind_of_first_voters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_storage(["format", "-t", CLUSTER, "-c", written(tmp_path, DYNAMIC), "-s", "-N"])
    assert "--no-initial-controllers: not allowed with argument -s" in capsys.readouterr().err.splitlines()[-1]


def test_a_random_uuid_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_storage(["random-uuid"]) == 0
    assert len(uuid_from_str(capsys.readouterr().out.strip())) == 16


def test_format_and_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert run_storage(["format", "--data-dir", data, "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAw", "-s"]) == 0
    assert capsys.readouterr().out == f"Formatted {data} for node 1 of cluster AAAAAAAAAAAAAAAAAAAAAw.\n"
    assert run_storage(["info", "--data-dir", data]) == 0
    names = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert names[:3] == [["DIRECTORY", data], ["CLUSTER-ID", "AAAAAAAAAAAAAAAAAAAAAw"], ["NODE-ID", "1"]]
    assert names[3][0] == "DIRECTORY-ID"
    assert names[4:] == [["BROKER", "stopped"]]


def test_a_formatted_directory_is_rejected_or_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert run_storage(["format", "--data-dir", data]) == 0
    before = (tmp_path / "data" / "meta.properties").read_text()
    assert run_storage(["format", "--data-dir", data]) == 1
    assert (
        capsys.readouterr().err == f"error: log directory {data} is already formatted (--ignore-formatted skips it)\n"
    )
    assert run_storage(["format", "--data-dir", data, "--ignore-formatted"]) == 0
    assert capsys.readouterr().out == f"{data} is already formatted; skipped.\n"
    assert (tmp_path / "data" / "meta.properties").read_text() == before


def test_the_directory_may_come_from_a_properties_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/data\nnode.id=7\n")
    assert run_storage(["format", "--config", str(config)]) == 0
    assert "for node 7 of cluster" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["format", "info"])
def test_without_a_directory_the_remedy_is_named(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_storage([action])
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        f"Usage: barnabas storage {action} [OPTIONS]\n"
        f"Try 'barnabas storage {action} --help' for help.\n"
        "error: no data directory (pass --data-dir DIR, or set log.dirs in --config FILE)\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["format", "--data-dir", "file"], "file is a file, not a directory (pass another --data-dir)"),
        (
            ["format", "--data-dir", "file/data"],
            "cannot use the data directory file/data: Not a directory (pass another --data-dir)",
        ),
        (["format", "--data-dir", "."], ". holds files that are not a broker's: file, odd (pass another --data-dir)"),
        (["info", "--data-dir", "."], ". holds files that are not a broker's: file, odd (pass another --data-dir)"),
        (["info", "--data-dir", "nowhere"], "nowhere does not exist (check the path)"),
        (["info", "--data-dir", "file"], "file is a file, not a directory (pass another --data-dir)"),
        (["format", "--data-dir", "d", "-c", "odd"], "broker.heartbeat.interval.ms=soon: must be a whole number"),
    ],
)
def test_a_failure_is_one_line_without_python(
    words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "odd").write_text("broker.heartbeat.interval.ms=soon\n")
    monkeypatch.chdir(tmp_path)
    assert run_storage(words) == 1
    assert capsys.readouterr().err == f"error: {error}\n"


def test_a_mistyped_action_gets_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_storage(["fromat"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith("error: no such command: fromat; did you mean format?\n")


def test_a_directory_that_is_not_formatted_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_storage(["info", "--data-dir", str(tmp_path)]) == 1
    assert capsys.readouterr() == (
        "",
        f"error: {tmp_path} is not formatted (`barnabas storage format --data-dir {tmp_path}` formats it)\n",
    )


def test_storage_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_storage([]) == 2
    assert capsys.readouterr().err.startswith("Usage: barnabas storage [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("file", "why"), [("nofile", "no such file or directory"), (".", "it is a directory (is it --data-dir?)")]
)
def test_a_file_that_cannot_be_read_is_a_wrong_command_line(
    file: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        run_storage(["info", "--config", file])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(f"\nerror: cannot read {file}: {why}\n")


def test_an_older_release_and_levels_of_features(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    options = ["-r", "4.3", "-f", "eligible.leader.replicas.version=0", "--feature", "kraft.version=1"]
    assert run_storage(["format", "--data-dir", data, *options]) == 0
    records = read_bootstrap(OsDisk(), data) or []
    assert {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)} == {
        "metadata.version": 30,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-r", "2.8"], "--release-version 2.8: must be a release from 3.9-IV0 to 4.4-IV2"),
        (["-r", "3.8"], "must be a release from 3.9-IV0 to 4.4-IV2"),
        (["-f", "group.version"], "--feature group.version: must be NAME=LEVEL with one of eligible.leader"),
        (["-f", "metadata.version=29"], "metadata.version=29: pass --release-version instead, from 3.9-IV0 to 4."),
        (
            ["-f", "group.verson=1"],
            "there is no feature group.verson; did you mean group.version? (the features are elig",
        ),
        (["-f", "foo=1"], "--feature foo=1: there is no feature foo (the features are eligible.leader"),
        (["-f", "group.version=2"], "--feature group.version=2: the level must be from 0 to 1"),
        (["-f", "kraft.version=2"], "--feature kraft.version=2: the level must be from 0 to 1"),
        (["-f", "kraft.version=0"], "--feature kraft.version=0: such a quorum is named by controller.quorum.voters"),
        (["-N"], "--no-initial-controllers is for a node that joins a quorum, but the settings name no other node"),
        (["-I", "1@localhost:9093:foo"], "must be ID@HOST:PORT:DIRECTORY-ID (`barnabas storage random-uuid` prints"),
        (["-I", "1@localhost:JEXY6aqzQY-32P5TStzaFg"], "must be ID@HOST:PORT:DIRECTORY-ID"),
        (["-I", "1@localhost:9093:AAAAAAAAAAAAAAAAAAAAAA"], "must be ID@HOST:PORT:DIRECTORY-ID"),
        (["-I", f"{VOTER_1},1@b:9:MvDxzVmcRsaTz33bUuRU6A"], "--initial-controllers names node 1 twice"),
        (["-I", f"{VOTER_1},2@b:9:JEXY6aqzQY-32P5TStzaFg"], "names directory JEXY6aqzQY-32P5TStzaFg twice"),
        (["-S", "SCRAM-SHA-256=[password=hunter2]"], "--add-scram: name is missing"),
        (["-S", "SCRAM-SHA-256=[name=alice,hunter2]"], "--add-scram: a part has no equals sign"),
    ],
)
def test_what_cannot_be_formatted_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run_storage(["format", "--data-dir", str(tmp_path / "data"), *options]) == 1
    printed = capsys.readouterr()
    assert words in printed.err
    assert (printed.err.count("\n"), "hunter2" in printed.err) == (1, False)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("file", ["kafka-4.properties", "kafka-3-kraft.properties", "hand-made.properties"])
def test_files_as_people_have_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    text = (Path(__file__).parents[1] / "config" / "properties" / file).read_text()
    config = tmp_path / "server.properties"
    config.write_text(text.replace("/tmp/kraft-combined-logs", f"{tmp_path}/data"))
    standalone = [] if "quorum.voters" in text else ["--standalone"]
    assert run_storage(["format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", str(config), *standalone]) == 0
    node = 7 if file == "hand-made.properties" else 1
    assert capsys.readouterr().out == f"Formatted {tmp_path}/data for node {node} of cluster 4L6g3nShT-eMCtK--X86sw.\n"


def test_a_directory_may_be_formatted_for_a_broker_with_tls(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/data\nlisteners=SSL://:9093\nssl.keystore.location=x\n")
    assert run_storage(["format", "-c", str(config)]) == 0
    assert run_storage(["info", "-c", str(config)]) == 0


def test_the_environment_names_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LOG_DIRS", f"{tmp_path}/data")
    monkeypatch.setenv("KAFKA_NODE_ID", "5")
    monkeypatch.setenv("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw")
    assert run_storage(["format"]) == 0
    assert capsys.readouterr().out == f"Formatted {tmp_path}/data for node 5 of cluster 4L6g3nShT-eMCtK--X86sw.\n"


def users_in(tmp_path: Path) -> dict[tuple[str, int], ScramCredential]:
    """Return the users that a formatted directory begins with, by name and mechanism."""
    return {
        (each.name, each.mechanism): ScramCredential(each.salt, each.stored_key, each.server_key, each.iterations)
        for each in read_bootstrap(OsDisk(), str(tmp_path / "data")) or ()
        if isinstance(each, UserScramCredentialRecord)
    }


def test_the_first_users_are_among_the_first_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "SCRAM-SHA-256=[name=alice,iterations=5000,salt=N3E=,password=hunter2]",
        "SCRAM-SHA-512=[name=bob,password=b]",
    ]
    assert run_storage(["format", "--data-dir", str(tmp_path / "data"), "-S", words[0], "--add-scram", words[1]]) == 0
    users = users_in(tmp_path)
    assert users["alice", 1] == credential_of_password(ScramMechanism.SCRAM_SHA_256, "hunter2", b"7q", 5000)
    bob = users["bob", 2]
    assert bob == credential_of_password(ScramMechanism.SCRAM_SHA_512, "b", bob.salt)
    printed = capsys.readouterr()
    assert "hunter2" not in printed.out + printed.err


@pytest.mark.parametrize("variable", [None, "one for all"])
def test_a_password_need_not_be_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    """A user has one password for all mechanisms; each user's is a line of the input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("of alice\nof bob\n"))
    monkeypatch.delenv("BARNABAS_USER_PASSWORD", raising=False)
    if variable is not None:
        monkeypatch.setenv("BARNABAS_USER_PASSWORD", variable)
    users = ["SCRAM-SHA-256=[name=alice]", "SCRAM-SHA-512=[name=alice]", "SCRAM-SHA-512=[name=bob]"]
    options = [word for user in users for word in ("-S", user)]
    assert run_storage(["format", "--data-dir", str(tmp_path / "data"), *options]) == 0
    found = users_in(tmp_path)
    for (name, number), kept in found.items():
        mechanism = next(each for each in ScramMechanism if each.number == number)
        assert kept == credential_of_password(mechanism, variable or f"of {name}", kept.salt)
    assert found.keys() == {("alice", 1), ("alice", 2), ("bob", 2)}


def test_an_empty_password_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BARNABAS_USER_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run_storage(["format", "--data-dir", str(tmp_path / "data"), "-S", "SCRAM-SHA-256=[name=alice]"]) == 1
    assert capsys.readouterr().err == (
        "error: --add-scram: the password of alice is empty (type one, or give one by BARNABAS_USER_PASSWORD or a line of the standard"
        " input)\n"
    )
    assert not (tmp_path / "data").exists()


def of_three(tmp_path: Path, text: str = DYNAMIC, **more: str) -> str:
    """Return the path of a properties file for three directories."""
    file = tmp_path / "three.properties"
    lines = [f"{name.replace('_', '.')}={value}\n" for name, value in more.items()]
    file.write_text(f"{text}log.dirs={tmp_path}/data,{tmp_path}/b,{tmp_path}/c\n{''.join(lines)}")
    return str(file)


def owners(tmp_path: Path) -> dict[str, MetaProperties]:
    """Return who owns each formatted directory."""
    found = {
        path.name: meta_properties.read(OsDisk(), str(path)) for path in sorted(tmp_path.iterdir()) if path.is_dir()
    }
    return {name: owner for name, owner in found.items() if owner is not None}


def has_metadata(tmp_path: Path) -> list[str]:
    return [path.parent.name for path in sorted(tmp_path.glob("*/__cluster_metadata-0"))]


def test_each_of_several_directories_has_an_id_and_one_has_the_metadata_log(tmp_path: Path) -> None:
    assert run_storage(["format", "-t", CLUSTER, "-c", of_three(tmp_path), "-I", PAIR]) == 0
    found = owners(tmp_path)
    assert list(found) == ["b", "c", "data"]
    assert {(each.cluster_id, each.node_id) for each in found.values()} == {(CLUSTER, 1)}
    assert len({each.directory_id for each in found.values()}) == 3
    assert found["data"].directory_id == "JEXY6aqzQY-32P5TStzaFg"
    assert has_metadata(tmp_path) == ["data"]
    assert all(read_bootstrap(OsDisk(), f"{tmp_path}/{name}") for name in found)


@pytest.mark.parametrize("folder", ["c", "elsewhere"])
def test_the_metadata_log_may_have_a_directory_of_its_own(tmp_path: Path, folder: str) -> None:
    text = of_three(tmp_path, metadata_log_dir=f"{tmp_path}/{folder}/")
    assert run_storage(["format", "-t", CLUSTER, "-c", text, "-s"]) == 0
    assert list(owners(tmp_path)) == sorted({"b", "c", "data", folder})
    assert has_metadata(tmp_path) == [folder]


def test_a_new_disk_is_formatted_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = of_three(tmp_path)
    assert run_storage(["format", "-t", CLUSTER, "-c", text, "-s"]) == 0
    before = owners(tmp_path)
    shutil.rmtree(tmp_path / "b")
    assert run_storage(["info", "-c", text]) == 1
    capsys.readouterr()
    assert run_storage(["format", "-t", CLUSTER, "-c", text, "-s", "-g"]) == 0
    said = capsys.readouterr().out
    assert said.count("is already formatted; skipped.") == 2
    assert f"Formatted {tmp_path}/b for node 1 of cluster {CLUSTER}." in said
    after = owners(tmp_path)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"b"}
    assert run_storage(["info", "-c", text]) == 0


@pytest.mark.parametrize(
    ("broken", "options", "words"),
    [
        ("", [], "b is already formatted (--ignore-formatted skips it)"),
        (
            "cluster.id=O\nnode.id=1\n",
            ["-g"],
            f"b belongs to cluster O, not to {CLUSTER} (pass --cluster-id O, or other",
        ),
        ("cluster.id=O\nnode.id=2\n", ["-g"], "b belongs to node 2, not to 1"),
        ("cluster.id=O\n", ["-g"], "b/meta.properties: "),
    ],
    ids=["formatted", "of-another-cluster", "of-another-node", "damaged"],
)
def test_one_directory_that_cannot_be_formatted_leaves_the_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str, options: list[str], words: str
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "meta.properties").write_text(f"version=1\n{broken}")
    assert run_storage(["format", "-t", CLUSTER, "-c", of_three(tmp_path), "-s", *options]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_directories_of_two_clusters_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "bc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
    assert run_storage(["format", "-t", CLUSTER, "-c", of_three(tmp_path), "-s", "-g"]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/b and {tmp_path}/c belong to different clusters\n"


def test_a_directory_named_twice_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_storage(["format", "--data-dir", f"{tmp_path}/b,{tmp_path}/./b/"]) == 1
    assert capsys.readouterr().err == f"error: log.dirs names {tmp_path}/b twice\n"

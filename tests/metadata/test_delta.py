"""Images and deltas: applying record by record, in lumps, or from a snapshot gives one and the same image."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.record_codec import MetadataRecord, UnknownRecord, decode_record, encode_record
from barnabas.protocol import messages

IDS = [bytes([65 + n]) * 16 for n in range(4)]
ENTITIES = [[("user", "u")], [("user", None)], [("client-id", "c"), ("user", "u")]]


class Records:
    """Draws records that may follow one another: a model of what exists, kept just far enough for that."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.topics: dict[bytes, int] = {}
        self.ever: set[bytes] = set()
        self.brokers: dict[int, int] = {}
        self.acls: set[bytes] = set()

    def one(self) -> MetadataRecord | None:
        kind = self.draw(st.sampled_from(sorted(name for name in dir(self) if name.startswith("make_"))))
        made: MetadataRecord | None = getattr(self, kind)()
        return made

    def pick(self, *values: object) -> object:
        return self.draw(st.sampled_from(values))

    def make_topic(self) -> MetadataRecord | None:
        fresh = [topic_id for topic_id in IDS if topic_id not in self.ever]
        if not fresh:
            return None
        self.topics[fresh[0]] = 0
        self.ever.add(fresh[0])
        # A name may come back only after its topic is gone, so each id has its own.
        return messages.TopicRecord(name=f"t{IDS.index(fresh[0])}", topic_id=fresh[0])

    def make_partition(self) -> MetadataRecord | None:
        if not self.topics:
            return None
        topic_id = self.pick(*self.topics)
        assert isinstance(topic_id, bytes)
        self.topics[topic_id] += 1
        return messages.PartitionRecord(
            partition_id=self.topics[topic_id] - 1,
            topic_id=topic_id,
            replicas=[1, 2],
            isr=self.pick([1], [1, 2]),
            leader=self.pick(1, 2, -1),
            leader_epoch=self.pick(0, 4),
            partition_epoch=self.pick(0, 6),
            directories=[IDS[0], IDS[1]],
            removing_replicas=self.pick([], [2]),
            adding_replicas=self.pick([], [1]),
            eligible_leader_replicas=self.pick(None, [1]),
            last_known_elr=self.pick(None, [2]),
            leader_recovery_state=self.pick(0, 1),
        )

    def make_change(self) -> MetadataRecord | None:
        known = [topic_id for topic_id, count in self.topics.items() if count]
        if not known:
            return None
        topic_id = self.pick(*known)
        assert isinstance(topic_id, bytes)
        return messages.PartitionChangeRecord(
            partition_id=self.draw(st.integers(0, self.topics[topic_id] - 1)),
            topic_id=topic_id,
            leader=self.pick(-2, -1, 1),
            isr=self.pick(None, [], [2]),
            eligible_leader_replicas=self.pick(None, [], [1]),
            last_known_elr=self.pick(None, [], [2]),
            adding_replicas=self.pick(None, [], [3]),
            removing_replicas=self.pick(None, [], [1]),
            replicas=self.pick(None, [2, 1]),
            directories=self.pick(None, [IDS[2], IDS[3]]),
            leader_recovery_state=self.pick(-1, 0, 1),
        )

    def make_clear_elr(self) -> MetadataRecord:
        return messages.ClearElrRecord(topic_name=self.pick("", "t0", "t1"))

    def make_remove(self) -> MetadataRecord | None:
        if not self.topics:
            return None
        topic_id = self.pick(*self.topics)
        assert isinstance(topic_id, bytes)
        del self.topics[topic_id]
        return messages.RemoveTopicRecord(topic_id=topic_id)

    def make_config(self) -> MetadataRecord:
        kind, name = self.pick((2, "t0"), (2, "t1"), (4, ""), (4, "1"), (32, "g"))  # type: ignore[misc]
        return messages.ConfigRecord(
            resource_type=kind, resource_name=name, name=self.pick("a", "b"), value=self.pick(None, "1", "")
        )

    def make_broker(self) -> MetadataRecord:
        broker = self.draw(st.integers(1, 2))
        self.brokers[broker] = self.brokers.get(broker, 0) + 10
        endpoint = messages.RegisterBrokerRecord.BrokerEndpoint(name="P", host="h", port=1, security_protocol=2)
        feature = messages.RegisterBrokerRecord.BrokerFeature(
            name="metadata.version", min_supported_version=7, max_supported_version=33
        )
        return messages.RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=IDS[0],
            broker_epoch=self.brokers[broker],
            end_points=[endpoint],
            features=[feature],
            rack=self.pick(None, "r"),
            fenced=self.pick(True, False),
            in_controlled_shutdown=self.pick(True, False),
            log_dirs=[IDS[1]],
            cordoned_log_dirs=self.pick(None, [IDS[1]]),
        )

    def make_broker_change(self) -> MetadataRecord | None:
        if not self.brokers:
            return None
        broker = self.pick(*self.brokers)
        assert isinstance(broker, int)
        epoch = self.brokers[broker]
        match self.draw(st.integers(0, 3)):
            case 0:
                return messages.FenceBrokerRecord(id=broker, epoch=epoch)
            case 1:
                return messages.UnfenceBrokerRecord(id=broker, epoch=epoch)
            case 2:
                return messages.BrokerRegistrationChangeRecord(
                    broker_id=broker,
                    broker_epoch=epoch,
                    fenced=self.pick(-1, 0, 1),
                    in_controlled_shutdown=self.pick(0, 1),
                    log_dirs=self.pick([], [IDS[3]]),
                    cordoned_log_dirs=self.pick(None, [], [IDS[2]]),
                )
            case _:
                del self.brokers[broker]
                return messages.UnregisterBrokerRecord(broker_id=broker, broker_epoch=epoch)

    def make_controller(self) -> MetadataRecord:
        if self.draw(st.booleans()):
            return messages.UnregisterControllerRecord(controller_id=1)
        endpoint = messages.RegisterControllerRecord.ControllerEndpoint(name="C", host="h", port=1, security_protocol=3)
        return messages.RegisterControllerRecord(controller_id=1, incarnation_id=IDS[0], end_points=[endpoint])

    def make_feature(self) -> MetadataRecord:
        return messages.FeatureLevelRecord(
            name=self.pick("group.version", "share.version"), feature_level=self.pick(0, 1, 2)
        )

    def make_quota(self) -> MetadataRecord:
        entity = self.pick(*ENTITIES)
        return messages.ClientQuotaRecord(
            entity=[
                messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                for kind, name in entity  # type: ignore[attr-defined]
            ],
            key=self.pick("producer_byte_rate", "request_percentage"),
            value=2.5,
            remove=self.pick(True, False, False),
        )

    def make_producer_ids(self) -> MetadataRecord:
        return messages.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=self.draw(st.integers(0, 9)))

    def make_acl(self) -> MetadataRecord:
        entry = self.pick(*IDS)
        assert isinstance(entry, bytes)
        if entry in self.acls and self.draw(st.booleans()):
            self.acls.discard(entry)
            return messages.RemoveAccessControlEntryRecord(id=entry)
        self.acls.add(entry)
        return messages.AccessControlEntryRecord(
            id=entry,
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:u",
            host="*",
            operation=4,
            permission_type=5,
        )

    def make_scram(self) -> MetadataRecord:
        if self.draw(st.booleans()):
            return messages.RemoveUserScramCredentialRecord(name="u", mechanism=1)
        return messages.UserScramCredentialRecord(
            name=self.pick("u", "v"), mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        )

    def make_token(self) -> MetadataRecord:
        if self.draw(st.booleans()):
            return messages.RemoveDelegationTokenRecord(token_id="x")
        return messages.DelegationTokenRecord(
            owner="User:o",
            requester="User:r",
            renewers=["User:n"],
            issue_timestamp=1,
            max_timestamp=2,
            expiration_timestamp=3,
            token_id=self.pick("x", "y"),
        )

    def make_nothing(self) -> MetadataRecord:
        return messages.NoOpRecord()


@st.composite
def record_lists(draw: st.DrawFn) -> list[MetadataRecord]:
    source = Records(draw)
    records: list[MetadataRecord] = [messages.FeatureLevelRecord(name="metadata.version", feature_level=33)]
    records += [record for _ in range(draw(st.integers(0, 40))) if (record := source.one()) is not None]
    return records


def replay(image: MetadataImage, records: list[MetadataRecord]) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply()


@settings(derandomize=True, deadline=None, max_examples=150)
@given(record_lists(), st.integers(1, 7))
def test_applying_in_lumps_is_replaying_all(records: list[MetadataRecord], size: int) -> None:
    whole = replay(MetadataImage(), records)
    image = MetadataImage()
    for start in range(0, len(records), size):
        image = replay(image, records[start : start + size])
    assert image == whole


@settings(derandomize=True, deadline=None, max_examples=150)
@given(record_lists())
def test_a_snapshot_of_an_image_is_the_image(records: list[MetadataRecord]) -> None:
    image = replay(MetadataImage(), records)
    written = [decode_record(encode_record(record, 33)) for record in image.records()]
    assert replay(MetadataImage(), written) == image


def endpoint(kind: type, protocol: int) -> object:
    return kind(name="P", host="h", port=1, security_protocol=protocol)


def feature(kind: type) -> object:
    return kind(name="f", min_supported_version=1, max_supported_version=2)


@pytest.mark.parametrize(
    "records",
    [
        [messages.FeatureLevelRecord(name="metadata.version", feature_level=33)],
        [messages.FeatureLevelRecord(name="group.version", feature_level=1)],
        [
            messages.RegisterControllerRecord(
                controller_id=1,
                incarnation_id=IDS[0],
                end_points=[endpoint(messages.RegisterControllerRecord.ControllerEndpoint, 3)],
                features=[feature(messages.RegisterControllerRecord.ControllerFeature)],
            )
        ],
        [
            messages.RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=IDS[0],
                broker_epoch=7,
                end_points=[endpoint(messages.RegisterBrokerRecord.BrokerEndpoint, 2)],
                features=[feature(messages.RegisterBrokerRecord.BrokerFeature)],
                rack="r",
                fenced=True,
                in_controlled_shutdown=True,
                log_dirs=[IDS[1]],
                cordoned_log_dirs=[IDS[2]],
            )
        ],
        [
            messages.TopicRecord(name="a", topic_id=IDS[0]),
            messages.PartitionRecord(
                partition_id=0,
                topic_id=IDS[0],
                replicas=[1, 2, 3],
                isr=[2],
                removing_replicas=[1],
                adding_replicas=[3],
                leader=2,
                leader_recovery_state=1,
                leader_epoch=4,
                partition_epoch=6,
                directories=[IDS[1], IDS[2], IDS[3]],
                eligible_leader_replicas=[4],
                last_known_elr=[5],
            ),
        ],
        [messages.ConfigRecord(resource_type=4, resource_name="1", name="n", value="v")],
        [
            messages.ClientQuotaRecord(
                entity=[
                    messages.ClientQuotaRecord.EntityData(entity_type="client-id", entity_name=None),
                    messages.ClientQuotaRecord.EntityData(entity_type="user", entity_name="u"),
                ],
                key="k",
                value=2.5,
            )
        ],
        [messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=0)],
        [
            messages.AccessControlEntryRecord(
                id=IDS[0],
                resource_type=2,
                resource_name="t",
                pattern_type=3,
                principal="User:u",
                host="*",
                operation=4,
                permission_type=5,
            )
        ],
        [
            messages.UserScramCredentialRecord(
                name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
            )
        ],
        [
            messages.DelegationTokenRecord(
                owner="User:o",
                requester="User:r",
                renewers=["User:n"],
                issue_timestamp=1,
                max_timestamp=2,
                expiration_timestamp=3,
                token_id="x",
            )
        ],
    ],
    ids=lambda records: records[-1].NAME,
)
def test_a_record_leaves_the_image_as_it_came(records: list[MetadataRecord]) -> None:
    assert list(replay(MetadataImage(), records).records()) == records


def test_snapshots_are_written_in_the_order_of_names_and_numbers() -> None:
    quota, config = messages.ClientQuotaRecord, messages.ConfigRecord

    def limit(key: str, *entity: tuple[str, str | None]) -> MetadataRecord:
        parts = [quota.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        return quota(entity=parts, key=key, value=1.0)

    ordered: list[MetadataRecord] = [
        messages.FeatureLevelRecord(name="metadata.version", feature_level=33),
        messages.FeatureLevelRecord(name="a", feature_level=1),
        messages.FeatureLevelRecord(name="z", feature_level=1),
        messages.TopicRecord(name="a", topic_id=IDS[1]),
        messages.PartitionRecord(partition_id=0, topic_id=IDS[1], replicas=[1], isr=[1], leader=1),
        messages.PartitionRecord(partition_id=1, topic_id=IDS[1], replicas=[1], isr=[1], leader=1),
        messages.TopicRecord(name="b", topic_id=IDS[0]),
        config(resource_type=2, resource_name="a", name="x", value="1"),
        config(resource_type=2, resource_name="a", name="y", value="1"),
        config(resource_type=2, resource_name="b", name="x", value="1"),
        config(resource_type=4, resource_name="", name="x", value="1"),
        limit("k", ("client-id", "c")),
        limit("k", ("client-id", "c"), ("user", "u")),
        limit("k", ("user", None)),
        limit("j", ("user", "a")),
        limit("k", ("user", "a")),
        limit("k", ("user", "b")),
    ]
    topic = [record for record in ordered if isinstance(record, messages.TopicRecord)]
    shuffled = [*topic, *reversed([record for record in ordered if record not in topic])]
    assert list(replay(MetadataImage(), shuffled).records()) == ordered


@settings(derandomize=True, deadline=None, max_examples=50)
@given(record_lists(), st.integers(0, 40))
def test_an_image_is_not_touched_by_its_successors(records: list[MetadataRecord], at: int) -> None:
    image, same = replay(MetadataImage(), records[:at]), replay(MetadataImage(), records[:at])
    replay(image, records[at:])
    assert image == same


def test_a_delta_tells_created_changed_and_deleted() -> None:
    topic, gone = IDS[0], IDS[1]
    image = replay(
        MetadataImage(),
        [
            messages.TopicRecord(name="kept", topic_id=topic),
            messages.PartitionRecord(partition_id=0, topic_id=topic, replicas=[1], isr=[1], leader=1),
            messages.TopicRecord(name="gone", topic_id=gone),
            messages.ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="1"),
        ],
    )
    delta = MetadataDelta(image)
    delta.replay(messages.PartitionRecord(partition_id=1, topic_id=topic, replicas=[1], isr=[1], leader=1))
    delta.replay(messages.RemoveTopicRecord(topic_id=gone))
    delta.replay(messages.TopicRecord(name="gone", topic_id=IDS[2]))
    assert delta.topics is not None
    assert [change.name for change in delta.topics.created()] == ["gone"]
    assert list(delta.topics.changed[topic].partition_changes) == [1]
    assert [image.name for image in delta.topics.deleted.values()] == ["gone"]
    assert delta.cluster is None
    after = delta.apply(MetadataProvenance(9, 2, 3))
    assert after.topics.by_name["gone"].topic_id == IDS[2]
    assert gone not in after.topics.by_id
    assert not after.configs.for_resource(2, "gone")
    assert after.provenance == (9, 2, 3)
    assert repr(delta) == "<MetadataDelta since=-1 changed=['topics', 'configs']>"


def test_leader_epoch_rises_with_each_election_and_partition_epoch_with_each_change() -> None:
    image = replay(
        MetadataImage(),
        [
            messages.TopicRecord(name="a", topic_id=IDS[0]),
            messages.PartitionRecord(
                partition_id=0,
                topic_id=IDS[0],
                replicas=[1, 2],
                isr=[1, 2],
                leader=1,
                leader_epoch=4,
                partition_epoch=6,
            ),
            messages.PartitionChangeRecord(partition_id=0, topic_id=IDS[0], isr=[1]),
            messages.PartitionChangeRecord(partition_id=0, topic_id=IDS[0], leader=-1),
            messages.PartitionChangeRecord(partition_id=0, topic_id=IDS[0], leader=1),
        ],
    )
    partition = image.topics.partition("a", 0)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr) == (1, 6, 9, (1,))


@pytest.mark.parametrize(("name", "cleared"), [("", "ab"), ("a", "a"), ("b", "b"), ("c", "")])
@pytest.mark.parametrize("at_once", [False, True], ids=["since an image", "within one delta"])
def test_eligible_leader_replicas_are_cleared_by_topic(name: str, cleared: str, at_once: bool) -> None:
    records: list[MetadataRecord] = []
    for topic, topic_id in zip("ab", IDS, strict=False):
        records.append(messages.TopicRecord(name=topic, topic_id=topic_id))
        for index, (elr, last) in enumerate([([1], [2]), ([1], None), (None, [2]), (None, None)]):
            partition = messages.PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
            partition.partition_epoch = 0
            partition.eligible_leader_replicas, partition.last_known_elr = elr, last
            records.append(partition)
    clear = messages.ClearElrRecord(topic_name=name)
    image = replay(MetadataImage(), [*records, clear] if at_once else records)
    image = image if at_once else replay(image, [clear])
    for topic in "ab":
        found = [
            (bool(p.elr), bool(p.last_known_elr), p.partition_epoch)
            for p in image.topics.by_name[topic].partitions.values()
        ]
        if topic in cleared:
            assert found == [(False, False, 1), (False, False, 1), (False, False, 1), (False, False, 0)]
        else:
            assert found == [(True, True, 0), (True, False, 0), (False, True, 0), (False, False, 0)]


def test_a_removed_topic_has_nothing_to_clear() -> None:
    records: list[MetadataRecord] = [
        messages.TopicRecord(name="a", topic_id=IDS[0]),
        messages.PartitionRecord(
            topic_id=IDS[0], partition_id=0, replicas=[1], isr=[1], leader=1, eligible_leader_replicas=[1]
        ),
    ]
    removed = [messages.RemoveTopicRecord(topic_id=IDS[0]), messages.ClearElrRecord()]
    assert replay(replay(MetadataImage(), records), removed).topics.by_name == {}


def test_a_record_that_no_image_holds_is_an_error() -> None:
    with pytest.raises(UnknownRecord, match="EndTransactionRecord"):
        MetadataDelta(MetadataImage()).replay(messages.EndTransactionRecord())


@pytest.mark.parametrize(
    "record",
    [
        messages.PartitionRecord(topic_id=IDS[0]),
        messages.PartitionChangeRecord(topic_id=IDS[0]),
        messages.RemoveTopicRecord(topic_id=IDS[0]),
        messages.FenceBrokerRecord(id=1, epoch=1),
        messages.UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        messages.RemoveAccessControlEntryRecord(id=IDS[0]),
    ],
    ids=lambda record: record.NAME,
)
def test_a_record_about_something_unknown_is_our_bug(record: MetadataRecord) -> None:
    with pytest.raises(AssertionError):
        MetadataDelta(MetadataImage()).replay(record)


@pytest.mark.parametrize("name", ["../../evil/x", "a/b", "..", ".", "", "a\x00", "a\n", "a" * 250])
def test_a_topic_whose_name_is_no_name_is_not_in_the_image(name: str) -> None:
    """Its directory would lie outside of the data directory."""
    with pytest.raises(AssertionError, match="TopicRecord with an impossible name: Topic name is invalid"):
        MetadataDelta(MetadataImage()).replay(messages.TopicRecord(name=name, topic_id=IDS[0]))


def test_a_partition_has_no_negative_index() -> None:
    delta = MetadataDelta(MetadataImage())
    delta.replay(messages.TopicRecord(name="a", topic_id=IDS[0]))
    with pytest.raises(AssertionError, match="PartitionRecord of a with the index -1"):
        delta.replay(messages.PartitionRecord(topic_id=IDS[0], partition_id=-1))


def test_records_about_a_broker() -> None:
    def after(*records: MetadataRecord) -> BrokerRegistration:
        registration = messages.RegisterBrokerRecord(broker_id=1, broker_epoch=5, fenced=True, log_dirs=[IDS[0]])
        return replay(MetadataImage(), [registration, *records]).cluster.brokers[1]

    def change(**fields: Any) -> MetadataRecord:
        return messages.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, **fields)

    unfence, fence = messages.UnfenceBrokerRecord(id=1, epoch=5), messages.FenceBrokerRecord(id=1, epoch=5)
    assert after().fenced
    assert not after(unfence).fenced
    assert after(unfence, fence).fenced
    assert not after(change(fenced=-1)).fenced
    assert after(unfence, change(fenced=1)).fenced
    assert after(change()) == after()
    assert after(change(in_controlled_shutdown=1)).in_controlled_shutdown
    assert after(change(in_controlled_shutdown=1), change()).in_controlled_shutdown
    assert after(change(log_dirs=[IDS[1]])).directories == (IDS[1],)
    assert after(change(log_dirs=[])).directories == (IDS[0],)
    assert after(change(cordoned_log_dirs=[IDS[0]]), change()).cordoned_directories == (IDS[0],)
    assert after(change(cordoned_log_dirs=[IDS[0]]), change(cordoned_log_dirs=[])).cordoned_directories == ()


def test_nodes_are_kept_in_the_order_of_their_ids_and_leave_when_they_unregister() -> None:
    records: list[MetadataRecord] = [messages.RegisterBrokerRecord(broker_id=i, broker_epoch=i) for i in (3, 1, 2)]
    records += [messages.RegisterControllerRecord(controller_id=i) for i in (3, 1, 2)]
    image = replay(MetadataImage(), records)
    assert (list(image.cluster.brokers), list(image.cluster.controllers)) == ([1, 2, 3], [1, 2, 3])
    gone = [
        messages.UnregisterBrokerRecord(broker_id=2, broker_epoch=2),
        messages.UnregisterControllerRecord(controller_id=3),
    ]
    image = replay(image, gone)
    assert (list(image.cluster.brokers), list(image.cluster.controllers)) == ([1, 3], [1, 2])
    unfenced = replay(image, [messages.UnfenceBrokerRecord(id=3, epoch=3)])
    assert [broker.id for broker in unfenced.cluster.live_brokers()] == [3]
    assert repr(image) == "<MetadataImage offset=-1 epoch=-1 brokers=[1, 3] topics=0>"


def test_a_record_of_another_broker_epoch_is_our_bug() -> None:
    image = replay(MetadataImage(), [messages.RegisterBrokerRecord(broker_id=1, broker_epoch=5)])
    with pytest.raises(AssertionError, match="has epoch 6 for broker 1, which has 5"):
        replay(image, [messages.FenceBrokerRecord(id=1, epoch=6)])

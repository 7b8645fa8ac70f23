"""A producer of our own for the second transaction protocol (KIP-890), one request at a time.

librdkafka knows only the first protocol, and the checker needs both. What the second one changes:

- the first Produce (v12) or TxnOffsetCommit (v5) adds its partition to the transaction by itself;
- every end of a transaction (EndTxn v5) answers with a new epoch, so a delayed request of the last transaction is fenced instead of
  landing in the next one; sequences begin at zero again.

Every request is repeated with its first sequence and epoch until it gets a final answer or times out: these make a repetition harmless,
and the checker tests that. A commit that was rejected immediately certainly did not happen; if an earlier attempt had no answer, it may
have happened.

Sources: KIP-98, KIP-447 (group metadata), KIP-890; errors as in org.apache.kafka.clients.producer.internals.TransactionManager.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.cluster import GROUP_COORDINATOR, TRANSACTION_COORDINATOR, Cluster
from barnabas.client.errors import ClientError
from barnabas.client.partition_records import produce_request
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.message import Message
from barnabas.records.builder import build_batch
from barnabas.security.client_security import ClientSecurity
from barnabas.verify.producers import Abortable, ProducerError, Refused, TopicPartition, Unknown

_PRODUCE = 12
_TXN_OFFSET_COMMIT = 5
_END_TXN = 5
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
_ABORTABLE = (
    ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    # To a Produce: the transaction timed out; the abort will show whether another producer has the id.
    ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE,
    ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.STALE_MEMBER_EPOCH,
)  # fmt: skip
_MAGIC = b"CGMDv2:"
_PAUSE_SECONDS = 0.02


class _Unanswered(Exception):
    """No answer within the timeout.

    Attributes:
        sent: whether the broker may have carried out an attempt.
    """

    def __init__(self, sent: bool, last: Exception | None) -> None:
        super().__init__(f"no answer in time: {last}")
        self.sent = sent


class _Answered(Exception):
    """A final error.

    Attributes:
        code: the broker's error.
        after_silence: an earlier attempt had no answer.
    """

    def __init__(self, error: KafkaError, after_silence: bool) -> None:
        super().__init__(f"{error.code.name}: {error.message}")
        self.code = error.code
        self.after_silence = after_silence


class TransactionalProducer:
    """See `producers.Producer`.

    Args:
        bootstrap: the cluster.
        transactional_id: of the transactions.
        timeout_s: every call ends within it.
        transaction_timeout_ms: the broker aborts after it.
        security: TLS and the login.
        cluster, clock, sleep: seams for tests.

    Raises:
        Refused: the broker does not speak the second protocol, or rejects the id.
        Unknown: no broker answers.
    """

    def __init__(
        self,
        bootstrap: str,
        transactional_id: str,
        *,
        timeout_s: float,
        transaction_timeout_ms: int,
        security: ClientSecurity | None = None,
        cluster: Cluster | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.transactional_id = transactional_id
        self.timeout_s = timeout_s
        self.producer_id = -1
        self.producer_epoch = -1
        self._cluster = cluster or Cluster(
            bootstrap, client_id=f"verify-{transactional_id}", timeout_ms=5000, security=security
        )
        self._clock = clock
        self._sleep = sleep
        self._sequences: dict[TopicPartition, int] = {}
        self._offsets: list[int | None] = []
        self._started = False
        request = messages.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms
        )
        try:
            answer = self._coordinated(request, 5)
        except (_Unanswered, _Answered) as error:
            self.close()
            raise (Refused if isinstance(error, _Answered) else Unknown)(f"InitProducerId: {error}") from None
        self._identity(answer)

    def __repr__(self) -> str:
        return f"<TransactionalProducer {self.transactional_id} {self.producer_id}/{self.producer_epoch}>"

    # The transaction
    def begin(self) -> None:
        self._offsets.clear()
        self._started = False

    def send(self, topic: str, partition: int, value: bytes) -> None:
        where = topic, partition
        sequence = self._sequences.get(where, 0)
        batch = build_batch(
            [(int(time.time() * 1000), None, value, ())], transactional=True,
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=sequence,
        )  # fmt: skip
        self._started = True
        try:
            self._offsets.append(self._produce(topic, partition, batch))
        except (_Answered, _Unanswered) as error:
            self._raise(error, "Produce")
        self._sequences[where] = sequence + 1

    def flush(self) -> list[int | None]:
        found, self._offsets = self._offsets, []
        return found

    def send_offsets(self, positions: Mapping[TopicPartition, int], group_metadata: bytes) -> None:
        group, generation, member, instance = parse_group_metadata(group_metadata)
        request_class = messages.TxnOffsetCommitRequest
        topics: dict[str, list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), position in positions.items():
            topics.setdefault(topic, []).append(
                request_class.TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=position)
            )
        request = request_class(
            transactional_id=self.transactional_id, group_id=group, producer_id=self.producer_id,
            producer_epoch=self.producer_epoch, generation_id_or_member_epoch=generation, member_id=member,
            group_instance_id=instance,
            topics=[request_class.TxnOffsetCommitRequestTopic(name=name, partitions=found) for name, found in topics.items()],
        )  # fmt: skip
        self._started = True

        def codes(answer: messages.TxnOffsetCommitResponse) -> list[int]:
            return [partition.error_code for topic in answer.topics for partition in topic.partitions]

        try:
            self._coordinated(request, _TXN_OFFSET_COMMIT, group=group, codes=codes)
        except (_Answered, _Unanswered) as error:
            self._raise(error, "TxnOffsetCommit")

    def commit(self) -> None:
        try:
            self._end(committed=True)
        except _Answered as error:
            if error.after_silence:
                raise Unknown(f"EndTxn: {error} after an attempt without an answer") from None
            if error.code == ErrorCode.TRANSACTION_ABORTABLE:
                raise Abortable(f"EndTxn: {error}") from None
            raise Refused(f"EndTxn: {error}") from None
        except _Unanswered as error:
            raise Unknown(f"EndTxn: {error}") from None

    def abort(self) -> None:
        try:
            self._end(committed=False)
        except (_Answered, _Unanswered) as error:
            raise Refused(f"EndTxn: {error}") from None

    def close(self) -> None:
        self._cluster.close()

    def _end(self, committed: bool) -> None:
        if not self._started:
            return
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=self.producer_id,
            producer_epoch=self.producer_epoch, committed=committed,
        )  # fmt: skip
        self._identity(self._coordinated(request, _END_TXN))

    def _identity(self, answer: messages.InitProducerIdResponse | messages.EndTxnResponse) -> None:
        self.producer_id = answer.producer_id
        self.producer_epoch = answer.producer_epoch
        self._sequences.clear()
        self._started = False

    def _raise(self, error: _Answered | _Unanswered, request: str) -> None:
        """Raise for a failed step inside a transaction: Refused if the producer is unusable, else Abortable."""
        fatal = isinstance(error, _Answered) and error.code not in _ABORTABLE
        kind: type[ProducerError] = Refused if fatal else Abortable
        raise kind(f"{request}: {error}") from None

    # Requests
    def _produce(self, topic: str, partition: int, batch: bytearray) -> int | None:
        batches = [((topic, partition), batch)]
        request = produce_request(batches, timeout_ms=5000, transactional_id=self.transactional_id)
        offset: int | None = None

        def ask() -> list[int]:
            nonlocal offset
            connection = self._cluster.connection(self._cluster.leader(topic, partition))
            answer = self._request(connection, request, _PRODUCE)
            (found,) = answer.responses[0].partition_responses
            if found.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return [0]  # an earlier attempt appended it, and the broker no longer remembers where
            offset = found.base_offset if not found.error_code else None
            return [found.error_code]

        self._until_answered(ask)
        return offset

    def _coordinated(
        self,
        request: Message,
        version: int,
        *,
        group: str | None = None,
        codes: Callable[[Any], list[int]] | None = None,
    ) -> Any:
        answer: Any = None
        key = self.transactional_id if group is None else group
        kind = TRANSACTION_COORDINATOR if group is None else GROUP_COORDINATOR

        def ask() -> list[int]:
            nonlocal answer
            connection = self._cluster.connection(self._cluster.coordinator(key, kind))
            answer = self._request(connection, request, version)
            return [answer.error_code] if codes is None else codes(answer)

        self._until_answered(ask)
        return answer

    def _request(self, connection: BlockingConnection, request: Message, version: int) -> Any:
        assert request.API_KEY is not None
        if not connection.supports(request.API_KEY, version):
            raise error_for(ErrorCode.UNSUPPORTED_VERSION, "the broker does not know transactions of version 2")
        self._sent = True
        return connection.request(request, version=version)

    def _until_answered(self, ask: Callable[[], list[int]]) -> None:
        """Ask until the answer is final.

        Raises:
            _Answered, _Unanswered
        """
        deadline = self._clock() + self.timeout_s
        silence = False
        while True:
            self._sent = False
            last: KafkaError
            try:
                wrong = [code for code in ask() if code]
                if not wrong:
                    return
                last = error_for(wrong[0])
            except ClientError as error:
                silence |= self._sent
                last = error
            except KafkaError as error:
                last = error
            if not last.code.retriable and not isinstance(last, ClientError):
                raise _Answered(last, silence)
            if self._clock() > deadline:
                raise _Unanswered(silence, last)
            if last.code != ErrorCode.CONCURRENT_TRANSACTIONS:
                self._cluster.forget()
            self._sleep(_PAUSE_SECONDS)

    _sent = False


def parse_group_metadata(metadata: bytes) -> tuple[str, int, str, str | None]:
    """Parse the group metadata of a confluent-kafka consumer.

    The layout is librdkafka's own (rd_kafka_consumer_group_metadata_write):

        "CGMDv2:" | int32 generation, in the machine's order | group id, NUL | member id, NUL | int8 no instance id | instance id, NUL

    Returns:
        Group id, generation or member epoch, member id, group instance id.

    Raises:
        ValueError: the layout is another.
    """
    if not metadata.startswith(_MAGIC) or len(metadata) < len(_MAGIC) + 7:
        raise ValueError(f"not a consumer's group metadata: {metadata!r}")
    (generation,) = struct.unpack_from("=i", metadata, len(_MAGIC))
    group, member, rest = metadata[len(_MAGIC) + 4 :].split(b"\0", 2)
    instance = None if rest[:1] == b"\1" else rest[1:].rstrip(b"\0").decode()
    return group.decode(), generation, member.decode(), instance


def transaction_version(bootstrap: str, timeout_ms: int, security: ClientSecurity | None = None) -> int:
    """Return the finalized level of the feature `transaction.version`; 0 if the cluster has not finalized it.

    Raises:
        KafkaError: no broker answers.
    """
    with contextlib.closing(Cluster(bootstrap, timeout_ms=timeout_ms, security=security)) as cluster:
        connection = cluster.any_connection()
        version = min(4, connection.versions[messages.ApiVersionsRequest.API_KEY][1])
        if version < 3:
            return 0
        request = messages.ApiVersionsRequest(client_software_name="barnabas", client_software_version="0")
        answer = connection.request(request, version=version)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        return int(levels.get("transaction.version", 0))

"""The errors of a record batch.

    KafkaError
    └─ RecordError                     every error of this room
       ├─ CorruptRecord                CORRUPT_MESSAGE: the bytes are not what the sender wrote, or not a batch
       │  └─ DecompressedTooLarge      … or a batch that opens into more bytes than the reader allows
       ├─ InvalidRecord                INVALID_RECORD: arrived intact, but breaks a rule of the format
       └─ UnsupportedRecordFormat      UNSUPPORTED_FOR_MESSAGE_FORMAT: magic 0 or 1

Sources: org.apache.kafka.common.errors.CorruptRecordException, org.apache.kafka.common.InvalidRecordException.
"""

from barnabas.protocol.errors import ErrorCode, KafkaError


class RecordError(KafkaError):
    """The bytes are not a valid record batch."""


class CorruptRecord(RecordError):
    """CORRUPT_MESSAGE: failed its CRC, has an impossible length, or does not decompress."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class DecompressedTooLarge(CorruptRecord):
    """The records decompress to more bytes than allowed."""


class InvalidRecord(RecordError):
    """INVALID_RECORD: the batch arrived intact, but a rule of the format is broken."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class UnsupportedRecordFormat(RecordError):
    """UNSUPPORTED_FOR_MESSAGE_FORMAT: message formats v0 and v1 are gone since Kafka 4.0 (KIP-724)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, message)

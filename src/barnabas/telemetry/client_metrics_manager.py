"""Which metrics each client is to push, and when it may push.

    client-metrics settings ──► subscriptions ──► client instance: metrics, interval, subscription id ──► PushedMetrics

- A client identifies itself by an instance id; a client without one gets a new one. Its subscription is the union of the metrics of
  all subscriptions that match it, with the shortest interval. `*` stands for all metrics; an empty list means nothing to push.
- The subscription id is a checksum of the subscription. A client with an old id gets UNKNOWN_SUBSCRIPTION_ID and asks again. The
  manager computes a client's subscription again when the settings have changed.
- A client that asks or pushes before its interval is over gets THROTTLING_QUOTA_EXCEEDED. The first push after asking and the last
  push (`terminating`) may come at any time; a push after the last one is rejected.
- At most `INSTANCES_MAX` clients are known; a new one replaces the client that was silent longest. The manager forgets a client when
  its connection ends, or after three intervals of silence, at least a minute.

Source: Kafka's `ClientMetricsManager`, `ClientMetricsInstance`; KIP-714.
"""

from __future__ import annotations

import logging
import random
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import crc32c

from barnabas.metadata.client_metrics_configs import parse_match
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.configs_image import ConfigResource, ConfigurationsImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID, Uuid, uuid_to_str
from barnabas.records.compression import decompress
from barnabas.regular_expressions import RegularExpression
from barnabas.telemetry.otlp import BadPayload, read_metrics
from barnabas.telemetry.pushed_metrics import PushedMetrics, Pusher
from barnabas.words.printable import printable

__all__ = ["ClientAttributes", "ClientMetricsInstance", "ClientMetricsManager"]

logger = logging.getLogger(__name__)

INSTANCES_MAX = 16384
EXPIRE_MS = 60_000
DEFAULT_INTERVAL_MS = 300_000
ALL_METRICS = "*"
ACCEPTED_COMPRESSION = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy, in order of preference; uncompressed pushes are accepted too."""
_CODECS = range(5)
_RESERVED = (ZERO_UUID, ONE_UUID)


class ClientAttributes(NamedTuple):
    """The attributes that subscriptions may match; None if unknown."""

    client_id: str | None
    client_software_name: str | None
    client_software_version: str | None
    client_source_address: str | None
    client_source_port: str | None


class _Subscription(NamedTuple):
    metrics: frozenset[str]
    interval_ms: int
    match: Mapping[str, RegularExpression]

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        return all(
            (value := attributes.get(name)) is not None and pattern.matches(value)
            for name, pattern in self.match.items()
        )


def _subscription(settings: Mapping[str, str]) -> _Subscription:
    """Make a subscription from settings.

    Raises: KafkaError INVALID_CONFIG for a pattern that is not RE2's: an Apache Kafka as controller accepts Java's.
    """
    return _Subscription(
        frozenset(_list(settings.get("metrics", ""))),
        int(settings.get("interval.ms", DEFAULT_INTERVAL_MS)),
        parse_match(settings.get("match", "")),
    )


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


class ClientMetricsInstance:
    """One client instance.

    Attributes:
        metrics: sorted prefixes of the names to push.
        last_error: the error of its last request; after some errors it may ask again immediately.
        version: the version of the subscriptions that it was made from.
    """

    def __init__(
        self, instance_id: Uuid, attributes: ClientAttributes, metrics: list[str], interval_ms: int, version: int
    ) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.version = version
        self.subscription_id = _subscription_id(instance_id, metrics, interval_ms)
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.expires_ms = 0
        self._last_get_ms = 0
        self._last_push_ms = 0

    def __repr__(self) -> str:
        return f"<ClientMetricsInstance {uuid_to_str(self.instance_id)} {self.metrics} each {self.interval_ms} ms>"

    def may_get(self, now_ms: int) -> bool:
        if now_ms - max(self._last_get_ms, self._last_push_ms) < self.interval_ms:
            return False
        self._last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        if self._last_get_ms <= self._last_push_ms and now_ms - self._last_push_ms < self.interval_ms:
            return False
        self._last_push_ms = now_ms
        return True


def _subscription_id(instance_id: bytes, metrics: list[str], interval_ms: int) -> int:
    text = f"{metrics}{interval_ms}".encode()
    mixed = crc32c.crc32c(text) ^ crc32c.crc32c(instance_id)
    return mixed - (1 << 32) if mixed >= 1 << 31 else mixed


class ClientMetricsManager:
    """The client telemetry of one broker.

    Args:
        max_bytes: telemetry.max.bytes.
        random: the source of new instance ids.

    Attributes:
        pushed: the newest values.
        throttles, unknown_subscriptions, exports, export_errors: counts.
    """

    def __init__(self, max_bytes: int, random: random.Random) -> None:
        self.max_bytes = max_bytes
        self.pushed = PushedMetrics()
        self.throttles = 0
        self.unknown_subscriptions = 0
        self.exports = 0
        self.export_errors = 0
        self._random = random
        self._subscriptions: dict[str, _Subscription] = {}
        self._version = 0
        self._instances: OrderedDict[bytes, ClientMetricsInstance] = OrderedDict()
        self._by_connection: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<ClientMetricsManager {list(self._subscriptions)} {len(self._instances)} instances>"

    @property
    def instance_count(self) -> int:
        return len(self._instances)

    def apply(self, changed: Iterable[ConfigResource], image: ConfigurationsImage) -> None:
        """Apply a commit that changed these resources."""
        if any(kind == ConfigResourceType.CLIENT_METRICS for kind, _ in changed):
            self.configure(image)

    def configure(self, image: ConfigurationsImage) -> None:
        """Read all subscriptions from the image."""
        kind = int(ConfigResourceType.CLIENT_METRICS)
        self._subscriptions = {}
        for name in image.names_of(kind):
            try:
                self._subscriptions[name] = _subscription(image.for_resource(kind, name))
            except KafkaError as error:
                logger.warning(
                    "The client metrics subscription %s matches no client: %s",
                    printable(name),
                    printable(error.message),
                )
        self._version += 1

    def get_subscription(
        self, instance_id: bytes, attributes: ClientAttributes, connection_id: str, now_ms: int
    ) -> ClientMetricsInstance:
        """Return the subscription of a client.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, the client asked or pushed less than an interval ago.
        """
        known = Uuid(instance_id) if instance_id != ZERO_UUID else self._new_id()
        instance = self._instance(known, attributes, connection_id, now_ms)
        may_ask_again = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if not instance.may_get(now_ms) and instance.last_error not in may_ask_again:
            self.throttles += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self,
        instance_id: bytes,
        attributes: ClientAttributes,
        connection_id: str,
        *,
        subscription_id: int,
        is_terminating: bool,
        codec: int,
        payload: bytes | memoryview,
        now_ms: int,
    ) -> None:
        """Accept or reject a push.

        Raises:
            KafkaError: INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE,
                TELEMETRY_TOO_LARGE, INVALID_RECORD.
        """
        if instance_id in _RESERVED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        instance = self._instance(Uuid(instance_id), attributes, connection_id, now_ms)
        try:
            self._check(instance, subscription_id, is_terminating, codec, payload, now_ms)
            if len(payload):
                self._take(instance, codec, payload, now_ms)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = is_terminating
        instance.last_error = ErrorCode.NONE

    def _check(
        self,
        instance: ClientMetricsInstance,
        subscription_id: int,
        is_terminating: bool,
        codec: int,
        payload: bytes | memoryview,
        now_ms: int,
    ) -> None:
        if instance.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not instance.may_push(now_ms) and not is_terminating:
            self.throttles += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != instance.subscription_id:
            self.unknown_subscriptions += 1
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if codec not in _CODECS:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(payload) > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _take(self, instance: ClientMetricsInstance, codec: int, payload: bytes | memoryview, now_ms: int) -> None:
        attributes = instance.attributes
        pusher = Pusher(
            uuid_to_str(instance.instance_id),
            attributes.client_id or "",
            attributes.client_software_name or "",
            attributes.client_software_version or "",
        )
        try:
            points = list(read_metrics(decompress(codec, payload, self.max_bytes)))
        except (KafkaError, BadPayload) as error:
            self.export_errors += 1
            logger.warning("Client metrics of %s cannot be read: %s", pusher, error)
            raise KafkaError(ErrorCode.INVALID_RECORD) from None
        self.exports += 1
        self.pushed.take(instance.instance_id, pusher, points, instance.interval_ms, now_ms)

    def _new_id(self) -> Uuid:
        while True:
            made = Uuid(self._random.randbytes(16))
            if made not in _RESERVED and made not in self._instances:
                return made

    def _instance(
        self, instance_id: Uuid, attributes: ClientAttributes, connection_id: str, now_ms: int
    ) -> ClientMetricsInstance:
        instance = self._instances.get(instance_id)
        if instance is None or instance.version < self._version:
            kept = attributes if instance is None else instance.attributes
            instance = self._instances[instance_id] = self._make(instance_id, kept)
            if len(self._instances) > INSTANCES_MAX:
                self._instances.popitem(last=False)
        self._instances.move_to_end(instance_id)
        self._by_connection[connection_id] = instance_id
        instance.expires_ms = now_ms + max(EXPIRE_MS, 3 * instance.interval_ms)
        return instance

    def _make(self, instance_id: Uuid, attributes: ClientAttributes) -> ClientMetricsInstance:
        values = {**attributes._asdict(), "client_instance_id": uuid_to_str(instance_id)}
        metrics: set[str] = set()
        interval_ms = DEFAULT_INTERVAL_MS
        for subscription in self._subscriptions.values():
            if subscription.matches(values):
                metrics |= subscription.metrics
                interval_ms = min(interval_ms, subscription.interval_ms)
        if ALL_METRICS in metrics:
            metrics = {ALL_METRICS}
        return ClientMetricsInstance(instance_id, attributes, sorted(metrics), interval_ms, self._version)

    def disconnected(self, connection_id: str) -> None:
        """Forget the client of a closed connection; its pushed values stay for a while."""
        instance_id = self._by_connection.pop(connection_id, None)
        if instance_id is not None:
            self._instances.pop(instance_id, None)

    def expire(self, now_ms: int) -> None:
        """Forget silent clients; the server calls this on a timer."""
        gone = {key for key, instance in self._instances.items() if instance.expires_ms <= now_ms}
        for instance_id in gone:
            del self._instances[instance_id]
        if gone:
            self._by_connection = {c: key for c, key in self._by_connection.items() if key not in gone}
        self.pushed.expire(now_ms)

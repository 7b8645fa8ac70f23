"""The names that an option may have, and what happens to other names.

Spark's own source ignores a name that it does not know, and so does Kafka's client. Then a query with `startingOffset`
begins at the wrong place, without a word. Here:

- A name that is nearly one of ours, or nearly a setting of Kafka's, is an error: it was meant to change what is read.
- A name of TLS or login that Kafka does not have is an error: without it a connection may be open to others.
- Another `kafka.` name that is like no setting of Kafka's is logged. It may be meant for a class that a job brings along.
- Any other name passes: Spark and the layers above it add their own (`path`), and a job may share its options.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from barnabas.words.nearest import nearest
from barnabas.words.printable import printable

logger = logging.getLogger("barnabas.spark")

SOURCE_OPTIONS = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "lossesTopic",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minRecordAge",
    "includeHeaders",
    "columns",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
SINK_OPTIONS = (
    "topic",
    "delivery",
    "queryId",
    "batchId",
    "createTopics",
    "failOnDifferentBatch",
    "transactionalIdPrefix",
    "checkpointLocation",
)

_SHARED_SETTINGS = """
    auto.include.jmx.reporter bootstrap.servers client.dns.lookup client.id config.providers connections.max.idle.ms
    enable.metrics.push interceptor.classes metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms
    retry.backoff.ms security.protocol security.providers send.buffer.bytes socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms
"""
_CONSUMER_SETTINGS = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack default.api.timeout.ms
    enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms isolation.level key.deserializer
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records partition.assignment.strategy session.timeout.ms
    share.acknowledgement.mode share.acquire.mode value.deserializer
"""
# A job may share its options between its source and its sink.
_PRODUCER_SETTINGS = """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    delivery.timeout.ms enable.idempotence key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.class partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable
    transactional.id value.serializer
"""
_SECURITY_SETTINGS = """
    sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
    ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    ssl.truststore.type
"""
_KAFKA_SETTINGS = frozenset((_SHARED_SETTINGS + _CONSUMER_SETTINGS + _PRODUCER_SETTINGS + _SECURITY_SETTINGS).split())
_SECURITY_FAMILIES = ("security.", "ssl.", "sasl.")


def check_names(names: Iterable[str], ours: Iterable[str]) -> None:
    """Check the names of a query's options, in any case.

    Args:
        names: what the query gives.
        ours: the options of the source, or those of the sink. A job may share its options between both.

    Raises:
        ValueError: a name is nearly that of an option.
    """
    known = {name.lower() for name in SOURCE_OPTIONS + SINK_OPTIONS}
    for name in names:
        if name.lower().startswith("kafka."):
            _check_setting(name)
        elif name.lower() not in known and (meant := nearest(name, ours)):
            raise ValueError(f"Option '{printable(name)}' is unknown; did you mean {meant}?")


def _check_setting(name: str) -> None:
    setting = name.lower().removeprefix("kafka.")
    if setting in _KAFKA_SETTINGS:
        return
    if meant := nearest(setting, _KAFKA_SETTINGS):
        raise ValueError(f"Option '{printable(name)}' is unknown; did you mean kafka.{meant}?")
    if setting.startswith(_SECURITY_FAMILIES):
        raise ValueError(f"Option '{printable(name)}' is unknown: Kafka has no such setting of TLS or login")
    logger.warning("Option '%s' has no effect: Kafka has no such setting", printable(name))

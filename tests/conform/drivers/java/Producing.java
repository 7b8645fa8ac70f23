// The producer's commands of the Java driver.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

final class Producing implements JavaDriver.Commands {
    private final String bootstrap;
    private final Consuming consuming;
    private KafkaProducer<byte[], byte[]> producer;

    Producing(String bootstrap, Consuming consuming) {
        this.bootstrap = bootstrap;
        this.consuming = consuming;
    }

    @Override
    public JsonNode run(String command, JsonNode c) throws Exception {
        switch (command) {
            case "produce": return produce(c);
            case "open_producer": return open(c);
            case "begin":
                producer.beginTransaction();
                return JavaDriver.done();
            case "send": return through(producer, c);
            case "send_offsets": return sendOffsets(c);
            case "commit_transaction":
                producer.commitTransaction();
                return JavaDriver.done();
            case "abort_transaction":
                producer.abortTransaction();
                return JavaDriver.done();
            case "throttled":
                return JavaDriver.JSON.valueToTree(producer.metrics().entrySet().stream()
                    .filter(metric -> metric.getKey().name().equals("produce-throttle-time-max"))
                    .mapToDouble(metric -> (Double) metric.getValue().metricValue()).max().getAsDouble());
            default: return null;
        }
    }

    @Override
    public void close() {
        if (producer != null) {
            producer.close();
        }
    }

    private KafkaProducer<byte[], byte[]> create(Properties settings) {
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        return new KafkaProducer<>(settings);
    }

    private JsonNode produce(JsonNode c) throws Exception {
        Properties settings = JavaDriver.settings(bootstrap);
        settings.put("acks", c.get("acks").asText());
        settings.put("compression.type", c.get("compression").asText());
        settings.put("enable.idempotence", c.get("idempotent").asText());
        settings.put("linger.ms", "20");
        settings.put("batch.size", c.get("batch_bytes").asText());
        settings.put("max.request.size", c.get("max_request_bytes").asText());
        try (KafkaProducer<byte[], byte[]> once = create(settings)) {
            return through(once, c);
        }
    }

    private JsonNode open(JsonNode c) {
        Properties settings = JavaDriver.settings(bootstrap);
        settings.put("client.id", c.get("client_id").asText());
        if (c.hasNonNull("transactional_id")) {
            settings.put("transactional.id", c.get("transactional_id").asText());
            settings.put("transaction.timeout.ms", c.get("timeout_ms").asText());
        }
        producer = create(settings);
        if (c.hasNonNull("transactional_id")) {
            producer.initTransactions();
        }
        return JavaDriver.done();
    }

    private static JsonNode through(KafkaProducer<byte[], byte[]> producer, JsonNode c) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode r : c.get("records")) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                c.get("topic").asText(), c.get("partition").asInt(), r.hasNonNull("timestamp") ? r.get("timestamp").asLong() : null,
                JavaDriver.data(r.get("key")), JavaDriver.data(r.get("value")));
            r.get("headers").forEach(h -> record.headers().add(h.get(0).asText(), JavaDriver.data(h.get(1))));
            sent.add(producer.send(record));
        }
        producer.flush();
        ArrayNode offsets = JavaDriver.JSON.createArrayNode();
        for (Future<RecordMetadata> future : sent) {
            offsets.add(future.get().offset());
        }
        return offsets;
    }

    private JsonNode sendOffsets(JsonNode c) {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        for (JsonNode o : c.get("offsets")) {
            wanted.put(new TopicPartition(o.get(0).asText(), o.get(1).asInt()), new OffsetAndMetadata(o.get(2).asLong()));
        }
        producer.sendOffsetsToTransaction(wanted, consuming.consumer.groupMetadata());
        return JavaDriver.done();
    }
}

// Driver for the Java clients: `java JavaDriver BOOTSTRAP`. What a driver is stands in protocol.md beside this file.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

public final class JavaDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String> STRATEGIES = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final String bootstrap;
    private KafkaConsumer<byte[], byte[]> consumer;

    private JavaDriver(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        JavaDriver driver = new JavaDriver(args[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode command = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("ok", driver.run(command));
            } catch (Exception error) {
                answer.put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
            if (command.get("do").asText().equals("close")) {
                return;
            }
        }
    }

    private JsonNode run(JsonNode c) throws Exception {
        switch (c.get("do").asText()) {
            case "version": return JSON.valueToTree("Java " + AppInfoParser.getVersion());
            case "produce": return produce(c);
            case "subscribe": return subscribe(c);
            case "assign": return assign(c);
            case "poll": return poll(c);
            case "assignment": return assignment();
            case "commit": return commit(c);
            case "committed": return committed(c);
            case "seek":
                consumer.seek(partition(c), c.get("offset").asLong());
                return JSON.valueToTree(true);
            case "position": return JSON.valueToTree(consumer.position(partition(c)));
            case "bounds": return bounds(c);
            case "offset_for_time": return offsetForTime(c);
            case "close":
                if (consumer != null) {
                    consumer.close();
                }
                return JSON.valueToTree(true);
            default: throw new IllegalArgumentException("unknown command " + c);
        }
    }

    private static byte[] data(JsonNode value) {
        return value == null || value.isNull() ? null : value.asText().getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] data) {
        return data == null ? null : new String(data, StandardCharsets.UTF_8);
    }

    private static TopicPartition partition(JsonNode c) {
        return new TopicPartition(c.get("topic").asText(), c.get("partition").asInt());
    }

    private static List<TopicPartition> partitions(JsonNode c) {
        List<TopicPartition> found = new ArrayList<>();
        c.get("partitions").forEach(p -> found.add(new TopicPartition(p.get(0).asText(), p.get(1).asInt())));
        return found;
    }

    private JsonNode produce(JsonNode c) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("acks", c.get("acks").asText());
        settings.put("compression.type", c.get("compression").asText());
        settings.put("enable.idempotence", c.get("idempotent").asText());
        settings.put("linger.ms", "20");
        settings.put("batch.size", c.get("batch_bytes").asText());
        settings.put("max.request.size", c.get("max_request_bytes").asText());
        ArrayNode offsets = JSON.createArrayNode();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode r : c.get("records")) {
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                    c.get("topic").asText(), c.get("partition").asInt(), data(r.get("key")), data(r.get("value")));
                r.get("headers").forEach(h -> record.headers().add(h.get(0).asText(), data(h.get(1))));
                sent.add(producer.send(record));
            }
            producer.flush();
            for (Future<RecordMetadata> future : sent) {
                offsets.add(future.get().offset());
            }
        }
        return offsets;
    }

    private Properties consumerSettings(JsonNode c) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        if (c.hasNonNull("group")) {
            settings.put("group.id", c.get("group").asText());
        }
        return settings;
    }

    private JsonNode subscribe(JsonNode c) {
        Properties settings = consumerSettings(c);
        settings.put("partition.assignment.strategy", STRATEGIES.get(c.get("strategy").asText()));
        settings.put("session.timeout.ms", c.get("session_ms").asText());
        settings.put("heartbeat.interval.ms", c.get("heartbeat_ms").asText());
        if (c.hasNonNull("instance")) {
            settings.put("group.instance.id", c.get("instance").asText());
        }
        consumer = new KafkaConsumer<>(settings);
        List<String> topics = new ArrayList<>();
        c.get("topics").forEach(t -> topics.add(t.asText()));
        consumer.subscribe(topics);
        return JSON.valueToTree(true);
    }

    private JsonNode assign(JsonNode c) {
        Properties settings = consumerSettings(c);
        settings.put("isolation.level", c.get("isolation").asText());
        consumer = new KafkaConsumer<>(settings);
        consumer.assign(partitions(c));
        return JSON.valueToTree(true);
    }

    private JsonNode poll(JsonNode c) {
        ArrayNode found = JSON.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(c.get("timeout_ms").asLong()))) {
            ArrayNode headers = JSON.createArrayNode();
            for (Header h : r.headers()) {
                headers.add(JSON.createArrayNode().add(h.key()).add(text(h.value())));
            }
            found.add(JSON.createArrayNode().add(r.topic()).add(r.partition()).add(r.offset())
                .add(text(r.key())).add(text(r.value())).add(headers));
        }
        return found;
    }

    private JsonNode assignment() {
        TreeSet<String> sorted = new TreeSet<>();
        consumer.assignment().forEach(tp -> sorted.add(String.format("%s\n%05d", tp.topic(), tp.partition())));
        ArrayNode found = JSON.createArrayNode();
        for (String one : sorted) {
            String[] parts = one.split("\n");
            found.add(JSON.createArrayNode().add(parts[0]).add(Integer.parseInt(parts[1])));
        }
        return found;
    }

    private JsonNode commit(JsonNode c) {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        for (JsonNode o : c.get("offsets")) {
            wanted.put(new TopicPartition(o.get(0).asText(), o.get(1).asInt()),
                new OffsetAndMetadata(o.get(2).asLong(), o.get(3).asText()));
        }
        consumer.commitSync(wanted);
        return JSON.valueToTree(true);
    }

    private JsonNode committed(JsonNode c) {
        ArrayNode found = JSON.createArrayNode();
        for (TopicPartition tp : partitions(c)) {
            OffsetAndMetadata offset = consumer.committed(java.util.Set.of(tp)).get(tp);
            ArrayNode row = found.addArray().add(tp.topic()).add(tp.partition());
            if (offset == null) {
                row.addNull();
            } else {
                row.add(offset.offset());
            }
        }
        return found;
    }

    private JsonNode bounds(JsonNode c) {
        TopicPartition tp = partition(c);
        return JSON.createArrayNode().add(consumer.beginningOffsets(List.of(tp)).get(tp))
            .add(consumer.endOffsets(List.of(tp)).get(tp));
    }

    private JsonNode offsetForTime(JsonNode c) {
        TopicPartition tp = partition(c);
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(tp, c.get("timestamp").asLong())).get(tp);
        return found == null ? JSON.nullNode() : JSON.valueToTree(found.offset());
    }
}

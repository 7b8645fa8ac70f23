// The consumer's commands of the Java driver.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

final class Consuming implements JavaDriver.Commands {
    private static final Map<String, String> STRATEGIES = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final String bootstrap;
    KafkaConsumer<byte[], byte[]> consumer;

    Consuming(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    @Override
    public JsonNode run(String command, JsonNode c) {
        switch (command) {
            case "subscribe": return subscribe(c);
            case "assign": return assign(c);
            case "poll": return poll(c);
            case "assignment": return assignment();
            case "commit": return commit(c);
            case "committed": return committed(c);
            case "seek":
                consumer.seek(JavaDriver.partition(c), c.get("offset").asLong());
                return JavaDriver.done();
            case "bounds": return bounds(c);
            case "offset_for_time": return offsetForTime(c);
            default: return null;
        }
    }

    @Override
    public void close() {
        if (consumer != null) {
            consumer.close();
        }
    }

    private Properties settings(JsonNode c) {
        Properties settings = JavaDriver.settings(bootstrap);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", c.get("isolation").asText());
        if (c.hasNonNull("group")) {
            settings.put("group.id", c.get("group").asText());
        }
        return settings;
    }

    private JsonNode subscribe(JsonNode c) {
        Properties settings = settings(c);
        settings.put("group.protocol", c.get("protocol").asText());
        if (c.get("protocol").asText().equals("classic")) {
            settings.put("partition.assignment.strategy", STRATEGIES.get(c.get("strategy").asText()));
            settings.put("session.timeout.ms", c.get("session_ms").asText());
            settings.put("heartbeat.interval.ms", c.get("heartbeat_ms").asText());
        }
        if (c.hasNonNull("instance")) {
            settings.put("group.instance.id", c.get("instance").asText());
        }
        consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(JavaDriver.texts(c.get("topics")));
        return JavaDriver.done();
    }

    private JsonNode assign(JsonNode c) {
        consumer = new KafkaConsumer<>(settings(c));
        consumer.assign(JavaDriver.partitions(c));
        return JavaDriver.done();
    }

    private JsonNode poll(JsonNode c) {
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(c.get("timeout_ms").asLong()))) {
            ArrayNode headers = JavaDriver.JSON.createArrayNode();
            for (Header h : r.headers()) {
                headers.add(JavaDriver.JSON.createArrayNode().add(h.key()).add(JavaDriver.text(h.value())));
            }
            found.add(JavaDriver.JSON.createArrayNode().add(r.topic()).add(r.partition()).add(r.offset())
                .add(JavaDriver.text(r.key())).add(JavaDriver.text(r.value())).add(headers));
        }
        return found;
    }

    private JsonNode assignment() {
        TreeSet<String> sorted = new TreeSet<>();
        consumer.assignment().forEach(tp -> sorted.add(String.format("%s\n%05d", tp.topic(), tp.partition())));
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        for (String one : sorted) {
            String[] parts = one.split("\n");
            found.add(JavaDriver.JSON.createArrayNode().add(parts[0]).add(Integer.parseInt(parts[1])));
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
        return JavaDriver.done();
    }

    private JsonNode committed(JsonNode c) {
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        for (TopicPartition tp : JavaDriver.partitions(c)) {
            OffsetAndMetadata offset = consumer.committed(Set.of(tp)).get(tp);
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
        TopicPartition tp = JavaDriver.partition(c);
        return JavaDriver.JSON.createArrayNode().add(consumer.beginningOffsets(List.of(tp)).get(tp))
            .add(consumer.endOffsets(List.of(tp)).get(tp));
    }

    private JsonNode offsetForTime(JsonNode c) {
        TopicPartition tp = JavaDriver.partition(c);
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(tp, c.get("timestamp").asLong())).get(tp);
        return found == null ? JavaDriver.JSON.nullNode() : JavaDriver.JSON.valueToTree(found.offset());
    }
}

// The share consumer's commands of the Java driver: acknowledgement record by record.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class Sharing implements JavaDriver.Commands {
    private final String bootstrap;
    private final Map<String, ConsumerRecord<byte[], byte[]>> acquired = new HashMap<>();
    private KafkaShareConsumer<byte[], byte[]> consumer;

    public Sharing(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    @Override
    public JsonNode run(String command, JsonNode c) {
        switch (command) {
            case "share_subscribe": return subscribe(c);
            case "share_poll": return poll(c);
            case "share_acknowledge": return acknowledge(c);
            default: return null;
        }
    }

    @Override
    public void close() {
        if (consumer != null) {
            consumer.close();
        }
    }

    private JsonNode subscribe(JsonNode c) {
        Properties settings = JavaDriver.settings(bootstrap);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("group.id", c.get("group").asText());
        settings.put("share.acknowledgement.mode", "explicit");
        consumer = new KafkaShareConsumer<>(settings);
        consumer.subscribe(JavaDriver.texts(c.get("topics")));
        return JavaDriver.done();
    }

    private JsonNode poll(JsonNode c) {
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(c.get("timeout_ms").asLong()))) {
            acquired.put(r.topic() + "/" + r.partition() + "/" + r.offset(), r);
            found.add(JavaDriver.JSON.createArrayNode().add(r.topic()).add(r.partition()).add(r.offset())
                .add(JavaDriver.text(r.value())).add(r.deliveryCount().orElse((short) 0).intValue()));
        }
        return found;
    }

    private JsonNode acknowledge(JsonNode c) {
        for (JsonNode r : c.get("records")) {
            AcknowledgeType type = AcknowledgeType.valueOf(r.get(3).asText().toUpperCase(Locale.ROOT));
            consumer.acknowledge(acquired.remove(r.get(0).asText() + "/" + r.get(1) + "/" + r.get(2)), type);
        }
        for (Optional<KafkaException> outcome : consumer.commitSync().values()) {
            if (outcome.isPresent()) {
                throw outcome.get();
            }
        }
        return JavaDriver.done();
    }
}

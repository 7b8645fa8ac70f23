// Java as introductions to Kafka print it; the first argument says which sample, the second where the cluster is.
// Corrected: serializers that the samples leave out, and the addresses.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;

public class Samples {
    static final String STRINGS = "org.apache.kafka.common.serialization.StringSerializer";

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "clicks" -> clicks(args[1]);
            case "idempotent" -> idempotent(args[1]);
            case "payments" -> payments(args[1]);
            case "transaction" -> transaction(args[1]);
            case "offsets" -> offsets(args[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static Properties strings(String bootstrap) {
        Properties props = new Properties();
        props.put("bootstrap.servers", bootstrap);
        props.put("key.serializer", STRINGS);
        props.put("value.serializer", STRINGS);
        return props;
    }

    static void clicks(String bootstrap) {
        Properties props = new Properties();
        props.put("bootstrap.servers", bootstrap + "," + bootstrap);
        props.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        props.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        Producer<String, String> producer = new KafkaProducer<>(props);
        // With key – all records for user "alice" go to same partition
        ProducerRecord<String, String> record = new ProducerRecord<>("clicks", "alice", "clicked_button");
        producer.send(record);
        // Without key – round robin
        ProducerRecord<String, String> record2 = new ProducerRecord<>("clicks", "clicked_button");
        producer.send(record2);
        producer.close();
    }

    static void idempotent(String bootstrap) {
        Properties props = strings(bootstrap);
        props.put("enable.idempotence", true);
        props.put("acks", "all"); // required for idempotence
        props.put("max.in.flight.requests.per.connection", 5); // can be > 1 now
        Producer<String, String> producer = new KafkaProducer<>(props);
        for (int i = 0; i < 1000; i++) {
            producer.send(new ProducerRecord<>("numbers", "key", Integer.toString(i)));
        }
        producer.close();
    }

    static void payments(String bootstrap) {
        Properties props = strings(bootstrap);
        props.put(ProducerConfig.ACKS_CONFIG, "all");
        props.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        Producer<String, String> producer = new KafkaProducer<>(props);
        for (String userId : List.of("ann", "ben", "ann", "ben", "ann")) {
            String payload = "paid by " + userId;
            ProducerRecord<String, String> record = new ProducerRecord<>(
                "payments",
                userId,          // key — determines partition assignment
                payload
            );
            producer.send(record);
        }
        producer.close();
    }

    static void transaction(String bootstrap) {
        Properties props = new Properties();
        props.put("bootstrap.servers", bootstrap);
        props.put("transactional.id", "my-transactional-id");
        props.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        props.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        props.put("enable.idempotence", true);
        KafkaProducer<String, String> producer = new KafkaProducer<>(props);
        producer.initTransactions();
        try {
            producer.beginTransaction();
            for (int i = 0; i < 100; i++) {
                producer.send(new ProducerRecord<>("topic1", Integer.toString(i), "value" + i));
            }
            producer.send(new ProducerRecord<>("topic2", "key", "value"));
            producer.commitTransaction();
        } catch (ProducerFencedException e) {
            producer.close();
        } catch (KafkaException e) {
            producer.abortTransaction();
            producer.close();
        }
        producer.close();
    }

    // One transaction is aborted and one committed; the second consumes what the first one gave back.
    static void offsets(String bootstrap) {
        Properties props = strings(bootstrap);
        props.put("transactional.id", "output");
        KafkaProducer<String, String> producer = new KafkaProducer<>(props);
        producer.initTransactions();
        for (int attempt = 0; attempt < 2; attempt++) {
            Properties reading = new Properties();
            reading.put("bootstrap.servers", bootstrap);
            reading.put("group.id", "input-readers");
            reading.put("auto.offset.reset", "earliest");
            reading.put("enable.auto.commit", "false");
            reading.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            reading.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            reading.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
            KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading);
            consumer.subscribe(List.of("input-topic"));
            ConsumerRecords<String, String> records = ConsumerRecords.empty();
            while (records.isEmpty()) {
                records = consumer.poll(Duration.ofMillis(200));
            }
            producer.beginTransaction();
            try {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> each : records) {
                    String key = each.key();
                    String value = each.value() + " in attempt " + attempt;
                    producer.send(new ProducerRecord<>("output-topic", key, value));
                    offsets.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (attempt == 0) {
                    // An abort drops what the producer has not sent yet; this one shall find records in the log.
                    producer.flush();
                    throw new IllegalStateException("the processing failed");
                }
                producer.commitTransaction();
            } catch (Exception e) {
                producer.abortTransaction();
            }
            consumer.close();
        }
        producer.close();
    }
}

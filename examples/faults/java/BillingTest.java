/*
 * A test of a consumer in Java that finds its bug by a fault. docs/faults.md explains it.
 *
 *     barnabas start --nodes 1 --faults 127.0.0.1:9900
 *     javac -cp 'libs/*' -d classes BillingTest.java
 *     java -cp 'classes:libs/*' BillingTest planted      # it fails: every customer pays twice
 *     java -cp 'classes:libs/*' BillingTest mended       # it passes
 *
 * libs has kafka-clients and what it needs. FAULTS names another address than http://127.0.0.1:9900.
 */

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

public class BillingTest {
    static final String FAULTS = System.getenv().getOrDefault("FAULTS", "http://127.0.0.1:9900");
    static final int PAYMENTS = 10;

    /** What the application keeps: how much every customer has paid, and, in the mended one, how far it has read. */
    static class Database {
        final Map<String, Integer> paid = new HashMap<>();
        final Map<TopicPartition, Long> next = new HashMap<>();
    }

    /** The application: reads payments and adds them up. */
    static void run(Database database, String bootstrapServers, boolean isMended) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrapServers,
                "group.id", "billing",
                "auto.offset.reset", "earliest",
                "enable.auto.commit", "false",
                "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
                "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of("payments"));
            long deadline = System.nanoTime() + 60_000_000_000L;
            while (!hasReadAll(consumer)) {
                check(System.nanoTime() < deadline, "the consumer does not reach the end");
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    TopicPartition from = new TopicPartition(record.topic(), record.partition());
                    if (isMended && record.offset() < database.next.getOrDefault(from, 0L)) {
                        continue; // It is in the sums: only its commit was lost.
                    }
                    database.paid.merge(record.key(), Integer.parseInt(record.value()), Integer::sum);
                    database.next.put(from, record.offset() + 1);
                }
                // The planted bug: a commit that fails is not noticed, and the sums do not say which records are in them.
                consumer.commitAsync((offsets, error) -> {});
            }
        }
    }

    static boolean hasReadAll(KafkaConsumer<String, String> consumer) {
        Set<TopicPartition> assigned = consumer.assignment();
        Map<TopicPartition, Long> ends = consumer.endOffsets(assigned);
        return !assigned.isEmpty() && assigned.stream().allMatch(each -> consumer.position(each) >= ends.get(each));
    }

    public static void main(String[] arguments) throws Exception {
        boolean isMended = arguments.length > 0 && arguments[0].equals("mended");
        boolean hasFault = arguments.length < 2 || !arguments[1].equals("without-fault");
        http("POST", "/reset", null);
        String bootstrapServers = field(http("GET", "/", null), "bootstrap_servers");
        http("POST", "/topics", "{\"name\": \"payments\", \"partitions\": 2}");
        pay(bootstrapServers);

        // Every commit of the group fails, as it does when somebody has taken the right to it away.
        String fault = hasFault
                ? field(http("POST", "/faults", "{\"kind\": \"fail\", \"api\": \"OffsetCommit\", \"error\": \"GROUP_AUTHORIZATION_FAILED\","
                        + " \"group\": \"billing\", \"times\": null}"), "id")
                : null;
        Database database = new Database();
        run(database, bootstrapServers, isMended);
        if (fault != null) {
            check(Integer.parseInt(field(http("DELETE", "/faults/" + fault, null), "hits")) > 0, "the fault has struck");
        }
        run(database, bootstrapServers, isMended); // The next instance of the application.

        int sum = database.paid.values().stream().mapToInt(Integer::intValue).sum();
        check(sum == PAYMENTS, "the customers have paid " + PAYMENTS + ", and the sums say " + sum);
        System.out.println("ok");
    }

    static void pay(String bootstrapServers) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrapServers,
                "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
                "value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int each = 0; each < PAYMENTS; each++) {
                producer.send(new ProducerRecord<>("payments", "customer-" + each, "1"));
            }
        }
    }

    static String http(String method, String path, String body) throws Exception {
        HttpRequest.BodyPublisher sent =
                body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create(FAULTS + path)).method(method, sent).build();
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        check(response.statusCode() < 300, method + " " + path + ": " + response.body());
        return response.body();
    }

    /** A field of a JSON answer, without a library. */
    static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\": (?:\"([^\"]*)\"|([0-9]+))").matcher(json);
        check(found.find(), name + " is not in " + json);
        return found.group(1) == null ? found.group(2) : found.group(1);
    }

    static void check(boolean holds, String text) {
        if (!holds) {
            System.err.println("FAILED: " + text);
            System.exit(1);
        }
    }
}

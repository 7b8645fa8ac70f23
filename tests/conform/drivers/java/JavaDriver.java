// Driver for the Java clients: `java JavaDriver BOOTSTRAP`. What a driver is stands in protocol.md one folder up.
//
// Producing, Consuming and Administering compile with every release of the clients since 3.9; Sharing needs 4.2 and is only
// loaded when a command asks for it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;

public final class JavaDriver {
    private static final String MODULES = "org.apache.kafka.common.security.";
    static final ObjectMapper JSON = new ObjectMapper();

    /** A group of commands: null when the command is not one of its own. */
    interface Commands {
        JsonNode run(String command, JsonNode c) throws Exception;

        void close() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Consuming consuming = new Consuming(args[0]);
        List<Commands> commands = new ArrayList<>(List.of(
            consuming, new Producing(args[0], consuming), new Administering(args[0])));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode c = JSON.readTree(line);
            String command = c.get("do").asText();
            ObjectNode answer = JSON.createObjectNode();
            try {
                if (command.startsWith("share_") && commands.size() == 3) {
                    commands.add((Commands) Class.forName("Sharing").getConstructor(String.class).newInstance(args[0]));
                }
                answer.set("ok", run(commands, command, c));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                Errors known = Errors.forException(cause);
                answer.put("error", cause.toString());
                answer.put("code", known == Errors.UNKNOWN_SERVER_ERROR ? null : Integer.valueOf(known.code()));
            }
            out.println(JSON.writeValueAsString(answer));
            if (command.equals("close")) {
                System.exit(0);
            }
        }
    }

    private static JsonNode run(List<Commands> commands, String command, JsonNode c) throws Exception {
        if (command.equals("version")) {
            Properties found = new Properties();
            found.load(Errors.class.getResourceAsStream("/kafka/kafka-version.properties"));
            return JSON.valueToTree("kafka-clients " + found.getProperty("version"));
        }
        if (command.equals("close")) {
            for (Commands one : commands) {
                one.close();
            }
            return done();
        }
        for (Commands one : commands) {
            JsonNode answer = one.run(command, c);
            if (answer != null) {
                return answer;
            }
        }
        throw new IllegalArgumentException("unknown command " + c);
    }

    static JsonNode done() {
        return JSON.valueToTree(true);
    }

    static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        String file = System.getenv("CARD_SECURITY");
        if (file != null) {
            try {
                secure(settings, JSON.readTree(Path.of(file).toFile()));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        return settings;
    }

    private static void secure(Properties settings, JsonNode way) throws IOException {
        settings.put("security.protocol", way.get("protocol").asText());
        settings.put("ssl.truststore.type", "PEM");
        settings.put("ssl.truststore.location", way.get("ca").asText());
        if (way.hasNonNull("certificate")) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.certificate.chain", Files.readString(Path.of(way.get("certificate").asText())));
            settings.put("ssl.keystore.key", Files.readString(Path.of(way.get("key").asText())));
        }
        if (way.hasNonNull("mechanism")) {
            String mechanism = way.get("mechanism").asText();
            settings.put("sasl.mechanism", mechanism);
            String login = "username=\"%s\" password=\"%s\"";
            String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            if (mechanism.equals("OAUTHBEARER")) {
                module = "oauthbearer.OAuthBearerLoginModule";
                login = "clientId=\"%s\" clientSecret=\"%s\"";
                secureByBearer(settings, way.get("token_url").asText());
            }
            if (way.get("is_token").asBoolean()) {
                login += " tokenauth=\"true\"";
            }
            settings.put("sasl.jaas.config", String.format(
                MODULES + module + " required " + login + ";", way.get("user").asText(), way.get("password").asText()));
        }
    }

    private static void secureByBearer(Properties settings, String url) {
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        settings.put("sasl.oauthbearer.token.endpoint.url", url);
        settings.put("sasl.login.callback.handler.class", MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler");
    }

    static byte[] data(JsonNode value) {
        return value == null || value.isNull() ? null : value.asText().getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] data) {
        return data == null ? null : new String(data, StandardCharsets.UTF_8);
    }

    static TopicPartition partition(JsonNode c) {
        return new TopicPartition(c.get("topic").asText(), c.get("partition").asInt());
    }

    static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(one -> found.add(one.asText()));
        return found;
    }

    static List<TopicPartition> partitions(JsonNode c) {
        List<TopicPartition> found = new ArrayList<>();
        c.get("partitions").forEach(p -> found.add(new TopicPartition(p.get(0).asText(), p.get(1).asInt())));
        return found;
    }

    static String value(ConsumerRecord<byte[], byte[]> record) {
        return text(record.value());
    }
}

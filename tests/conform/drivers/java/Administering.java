// The admin client's commands of the Java driver.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

final class Administering implements JavaDriver.Commands {
    private final String bootstrap;
    private Admin admin;

    Administering(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    @Override
    public JsonNode run(String command, JsonNode c) throws Exception {
        if (admin == null) {
            admin = Admin.create(JavaDriver.settings(bootstrap));
        }
        String topic = c.path("topic").asText();
        String group = c.path("group").asText();
        switch (command) {
            case "create_topic":
                NewTopic wanted = new NewTopic(topic, c.get("partitions").asInt(), (short) 1);
                admin.createTopics(List.of(wanted.configs(map(c.get("config"))))).all().get();
                return JavaDriver.done();
            case "list_topics": return sorted(admin.listTopics().names().get(), c);
            case "describe_topic": return describeTopic(topic);
            case "add_partitions":
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(c.get("total").asInt()))).all().get();
                return JavaDriver.done();
            case "delete_topic":
                admin.deleteTopics(List.of(topic)).all().get();
                return JavaDriver.done();
            case "alter_config": return alterConfig(topic, map(c.get("config")));
            case "describe_config": return describeConfig(topic, JavaDriver.texts(c.get("names")));
            case "delete_records":
                admin.deleteRecords(Map.of(JavaDriver.partition(c), RecordsToDelete.beforeOffset(c.get("offset").asLong())))
                    .all().get();
                return JavaDriver.done();
            case "list_groups": return listGroups(c);
            case "describe_group": return describeGroup(group);
            case "group_offsets": return groupOffsets(group, JavaDriver.partitions(c));
            case "delete_offsets":
                admin.deleteConsumerGroupOffsets(group, Set.of(JavaDriver.partition(c))).all().get();
                return JavaDriver.done();
            case "delete_group":
                admin.deleteConsumerGroups(List.of(group)).all().get();
                return JavaDriver.done();
            default: return null;
        }
    }

    @Override
    public void close() {
        if (admin != null) {
            admin.close();
        }
    }

    private static Map<String, String> map(JsonNode config) {
        Map<String, String> found = new HashMap<>();
        config.fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    private static JsonNode sorted(Iterable<String> names, JsonNode c) {
        List<String> found = new ArrayList<>();
        names.forEach(name -> {
            if (name.startsWith(c.get("prefix").asText())) {
                found.add(name);
            }
        });
        found.sort(null);
        return JavaDriver.JSON.valueToTree(found);
    }

    private static ArrayNode ids(List<Node> nodes) {
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        nodes.forEach(node -> found.add(node.id()));
        return found;
    }

    private JsonNode describeTopic(String topic) throws Exception {
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        for (TopicPartitionInfo p : admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
            int leader = p.leader() == null ? -1 : p.leader().id();
            found.addArray().add(p.partition()).add(leader).add(ids(p.replicas())).add(ids(p.isr()));
        }
        return found;
    }

    private JsonNode alterConfig(String topic, Map<String, String> config) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        config.forEach((name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), changes)).all().get();
        return JavaDriver.done();
    }

    private JsonNode describeConfig(String topic, List<String> names) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        ObjectNode found = JavaDriver.JSON.createObjectNode();
        names.forEach(name -> found.put(name, config.get(name).value()));
        return found;
    }

    @SuppressWarnings("deprecation")  // its successor is not in 3.9
    private JsonNode listGroups(JsonNode c) throws Exception {
        List<String> names = new ArrayList<>();
        admin.listConsumerGroups().all().get().forEach(group -> names.add(group.groupId()));
        return sorted(names, c);
    }

    @SuppressWarnings("deprecation")  // its successor is not in 3.9
    private JsonNode describeGroup(String group) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        String state = found.state().name().replace("_", "").toUpperCase(Locale.ROOT);
        return JavaDriver.JSON.createArrayNode().add(state).add(found.members().size());
    }

    private JsonNode groupOffsets(String group, List<TopicPartition> partitions) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = admin.listConsumerGroupOffsets(group)
            .partitionsToOffsetAndMetadata().get();
        ArrayNode found = JavaDriver.JSON.createArrayNode();
        for (TopicPartition tp : partitions) {
            ArrayNode row = found.addArray().add(tp.topic()).add(tp.partition());
            if (offsets.get(tp) == null) {
                row.addNull();
            } else {
                row.add(offsets.get(tp).offset());
            }
        }
        return found;
    }
}

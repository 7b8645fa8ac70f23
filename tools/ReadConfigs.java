import java.util.*;
import org.apache.kafka.common.config.ConfigDef;

/** Prints what Kafka's own classes know about every setting, one tab-separated line each; see read_configs.py. */
public class ReadConfigs {
    static String clean(Object text) {
        return text == null ? "" : text.toString().replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
    }

    static void print(String scope, ConfigDef def, Map<String, String> dynamic, Map<String, String> synonyms) {
        for (ConfigDef.ConfigKey key : def.configKeys().values()) {
            String value = "-";
            if (key.hasDefault())
                value = key.defaultValue == null ? "null" : "=" + ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(String.join("\t", scope, key.name, key.type.name(), key.importance.name(), clean(value),
                dynamic.getOrDefault(key.name, "-"), key.internalConfig ? "internal" : "-",
                synonyms.getOrDefault(key.name, "-"), clean(key.validator)));
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> topic = new HashMap<>();
        org.apache.kafka.server.config.ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, list) -> {
            List<String> parts = new ArrayList<>();
            list.forEach(s -> {
                String probe = s.converter().apply("7");
                parts.add(s.name() + (probe.equals("7") ? "" : "*" + Long.parseLong(probe) / 7));
            });
            topic.put(name, String.join(",", parts));
        });
        Map<String, String> group = new HashMap<>();
        org.apache.kafka.coordinator.group.GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach(
            (name, synonym) -> synonym.ifPresent(s -> group.put(name, s)));
        Map<String, String> modes = org.apache.kafka.server.config.DynamicBrokerConfig.dynamicConfigUpdateModes();
        Map<String, String> broker = new HashMap<>();
        ConfigDef all = org.apache.kafka.server.config.AbstractKafkaConfig.CONFIG_DEF;
        for (String name : all.names()) {
            List<String> found = org.apache.kafka.server.config.DynamicBrokerConfig.brokerConfigSynonyms(name, false);
            if (found.size() > 1) broker.put(name, String.join(",", found));
        }
        print("topic", topicDef(), Map.of(), topic);
        print("broker", all, modes, broker);
        ConfigDef dynamic = new ConfigDef();
        org.apache.kafka.server.config.DynamicConfig.Broker.configKeys().values().forEach(key -> {
            if (!all.names().contains(key.name)) dynamic.define(key);
        });
        print("broker", dynamic, modes, Map.of());
        print("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF, Map.of(), group);
        print("client-metrics", org.apache.kafka.server.metrics.ClientMetricsConfigs.configDef(), Map.of(), Map.of());
    }

    static ConfigDef topicDef() throws Exception {
        try {
            return (ConfigDef) org.apache.kafka.storage.internals.log.LogConfig.class.getMethod("configDefCopy").invoke(null);
        } catch (NoSuchMethodException e) {
            var field = org.apache.kafka.storage.internals.log.LogConfig.class.getDeclaredField("CONFIG");
            field.setAccessible(true);
            return (ConfigDef) field.get(null);
        }
    }
}

// A Kafka Streams word count: `java WordCount BOOTSTRAP STATE_DIR KEY=VALUE...`, with Kafka Streams' own settings, and `input` and `output`.
//
// It prints `version V`, then `state S` with each change, `restored PARTITION RECORDS` for each store that came back from its changelog,
// `tasks ...` (its active tasks) for each byte on its input, `error E` for what killed a thread. At the end of its input it leaves and
// prints `closed`.

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;

public final class WordCount {
    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        String input = "lines";
        String output = "counts";
        for (String setting : Arrays.copyOfRange(args, 2, args.length)) {
            String key = setting.substring(0, setting.indexOf('='));
            String value = setting.substring(setting.indexOf('=') + 1);
            if (key.equals("input")) {
                input = value;
            } else if (key.equals("output")) {
                output = value;
            } else {
                settings.put(key, value);
            }
        }

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(output, Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> say("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            say("error " + error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            }

            @Override
            public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
            }

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long total) {
                say("restored " + partition.partition() + " " + total);
            }
        });
        say("version " + AppInfoParser.getVersion());
        CountDownLatch ended = new CountDownLatch(1);
        Thread listener = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // One byte asks who has what; the end of input ends the program.
                    StringBuilder tasks = new StringBuilder();
                    streams.metadataForLocalThreads().forEach(thread -> thread.activeTasks().forEach(
                        task -> tasks.append(' ').append(task.taskId())));
                    say("tasks" + tasks);
                }
            } catch (IOException error) {
                say("error " + error);
            }
            ended.countDown();
        });
        listener.setDaemon(true);
        listener.start();
        streams.start();
        ended.await();
        streams.close(Duration.ofSeconds(20));
        say("closed");
    }
}

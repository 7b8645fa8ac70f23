//! The consumer's commands.

use crate::{config, lossless, number, text, Answer};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(200);
/// What librdkafka reports and then mends by itself: a coordinator that is loading, a broker that restarts.
const PASSING: [RDKafkaErrorCode; 5] = [
    RDKafkaErrorCode::NotCoordinator,
    RDKafkaErrorCode::CoordinatorNotAvailable,
    RDKafkaErrorCode::CoordinatorLoadInProgress,
    RDKafkaErrorCode::AllBrokersDown,
    RDKafkaErrorCode::BrokerTransportFailure,
];

pub struct Consuming {
    bootstrap: String,
    consumer: Option<BaseConsumer>,
}

/// A list of the rows' partitions, each with the offset that `offset` finds in its row.
pub fn partitions(rows: &Value, offset: impl Fn(&Value) -> Offset) -> TopicPartitionList {
    let mut found = TopicPartitionList::new();
    for row in rows.as_array().expect("rows") {
        let (topic, partition) = (row[0].as_str().unwrap(), row[1].as_i64().unwrap() as i32);
        found.add_partition_offset(topic, partition, offset(row)).expect("a valid offset");
        if let Some(metadata) = row[3].as_str() {
            found.find_partition(topic, partition).unwrap().set_metadata(metadata);
        }
    }
    found
}

/// The committed offsets as an answer gives them.
pub fn committed(consumer: &BaseConsumer, rows: &Value) -> Answer {
    let found = consumer.committed_offsets(partitions(rows, |_| Offset::Invalid), PATIENCE)?;
    let row = |topic: &str, partition: i32| match found.find_partition(topic, partition).map(|one| one.offset()) {
        Some(Offset::Offset(offset)) => json!([topic, partition, offset]),
        _ => json!([topic, partition, null]),
    };
    let asked = rows.as_array().unwrap().iter();
    Ok(asked.map(|one| row(one[0].as_str().unwrap(), one[1].as_i64().unwrap() as i32)).collect())
}

impl Consuming {
    pub fn new(bootstrap: &str) -> Consuming {
        Consuming { bootstrap: bootstrap.to_string(), consumer: None }
    }

    pub fn run(&mut self, command: &str, c: &Value) -> Option<Answer> {
        Some(match command {
            "subscribe" => self.subscribe(c),
            "assign" => self.assign(c),
            "poll" => self.poll(c),
            "assignment" => self.assignment(),
            "commit" => self.commit(c),
            "committed" => committed(self.open_one(), &c["partitions"]),
            "seek" => self.seek(c),
            "bounds" => self.bounds(c),
            "offset_for_time" => self.offset_for_time(c),
            _ => return None,
        })
    }

    pub fn group_metadata(&self) -> ConsumerGroupMetadata {
        self.open_one().group_metadata().expect("a consumer of a group")
    }

    pub fn close(&mut self) {
        self.consumer = None;
    }

    fn open_one(&self) -> &BaseConsumer {
        self.consumer.as_ref().expect("a consumer is open")
    }

    fn settings(&self, c: &Value) -> ClientConfig {
        let mut settings = config(&self.bootstrap);
        settings
            .set("group.id", c["group"].as_str().unwrap_or("no-group"))
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("isolation.level", text(c, "isolation"));
        settings
    }

    fn subscribe(&mut self, c: &Value) -> Answer {
        let mut settings = self.settings(c);
        settings.set("group.protocol", text(c, "protocol"));
        if text(c, "protocol") == "classic" {
            settings
                .set("partition.assignment.strategy", text(c, "strategy"))
                .set("session.timeout.ms", c["session_ms"].to_string())
                .set("heartbeat.interval.ms", c["heartbeat_ms"].to_string());
        }
        if let Some(instance) = c["instance"].as_str() {
            settings.set("group.instance.id", instance);
        }
        let consumer: BaseConsumer = settings.create()?;
        let topics: Vec<&str> = c["topics"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        consumer.subscribe(&topics)?;
        self.consumer = Some(consumer);
        Ok(json!(true))
    }

    fn assign(&mut self, c: &Value) -> Answer {
        let consumer: BaseConsumer = self.settings(c).create()?;
        // Without a group librdkafka must be told where to begin, or it asks a coordinator all the same.
        let begin = if c["group"].is_null() { Offset::Beginning } else { Offset::Stored };
        consumer.assign(&partitions(&c["partitions"], |_| begin))?;
        self.consumer = Some(consumer);
        Ok(json!(true))
    }

    fn poll(&self, c: &Value) -> Answer {
        let end = Instant::now() + Duration::from_millis(number(c, "timeout_ms") as u64);
        let mut rows = Vec::new();
        while rows.len() < number(c, "max") as usize {
            match self.open_one().poll(end.saturating_duration_since(Instant::now())) {
                Some(Ok(message)) => rows.push(row(&message)),
                Some(Err(error)) if passes(&error) => continue,
                Some(Err(error)) => return Err(error.into()),
                None => break,
            }
        }
        Ok(json!(rows))
    }

    fn assignment(&self) -> Answer {
        let found = self.open_one().assignment()?;
        let mut rows: Vec<(String, i32)> =
            found.elements().iter().map(|one| (one.topic().to_string(), one.partition())).collect();
        rows.sort();
        Ok(json!(rows))
    }

    fn commit(&self, c: &Value) -> Answer {
        let wanted = partitions(&c["offsets"], |row| Offset::Offset(row[2].as_i64().unwrap()));
        self.open_one().commit(&wanted, CommitMode::Sync)?;
        Ok(json!(true))
    }

    fn seek(&self, c: &Value) -> Answer {
        let offset = Offset::Offset(number(c, "offset"));
        self.open_one().seek(text(c, "topic"), number(c, "partition") as i32, offset, PATIENCE)?;
        Ok(json!(true))
    }

    fn bounds(&self, c: &Value) -> Answer {
        let found = self.open_one().fetch_watermarks(text(c, "topic"), number(c, "partition") as i32, PATIENCE)?;
        Ok(json!([found.0, found.1]))
    }

    fn offset_for_time(&self, c: &Value) -> Answer {
        let asked = json!([[c["topic"], c["partition"]]]);
        let times = partitions(&asked, |_| Offset::Offset(number(c, "timestamp")));
        let found = self.open_one().offsets_for_times(times, PATIENCE)?;
        Ok(match found.elements()[0].offset() {
            Offset::Offset(offset) => json!(offset),
            _ => Value::Null,
        })
    }
}

fn passes(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(|code| PASSING.contains(&code))
}

fn row(m: &BorrowedMessage<'_>) -> Value {
    let headers: Vec<Value> = m
        .headers()
        .map(|all| all.iter().map(|one| json!([one.key, lossless(one.value)])).collect())
        .unwrap_or_default();
    json!([m.topic(), m.partition(), m.offset(), lossless(m.key()), lossless(m.payload()), headers])
}

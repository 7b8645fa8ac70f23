//! The producer's commands.

use crate::consuming::{partitions, Consuming};
use crate::{config, number, text, Answer, Failure};
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Offset};
use serde_json::{json, Value};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

type Outcomes = Arc<Mutex<Vec<Option<Result<i64, KafkaError>>>>>;

/// Keeps each record's outcome at the record's place.
struct Deliveries;

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<(Outcomes, usize)>;

    fn delivery(&self, outcome: &DeliveryResult<'_>, place: Self::DeliveryOpaque) {
        let found = match outcome {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => Err(error.clone()),
        };
        place.0.lock().unwrap()[place.1] = Some(found);
    }
}

type OpenProducer = ThreadedProducer<Deliveries>;

pub struct Producing {
    bootstrap: String,
    producer: Option<OpenProducer>,
}

impl Producing {
    pub fn new(bootstrap: &str) -> Producing {
        Producing { bootstrap: bootstrap.to_string(), producer: None }
    }

    pub fn run(&mut self, command: &str, c: &Value) -> Option<Answer> {
        Some(match command {
            "produce" => self.produce(c),
            "open_producer" => self.open(c),
            "begin" => done(self.open_one().begin_transaction()),
            "send" => through(self.open_one(), c),
            "commit_transaction" => done(self.open_one().commit_transaction(PATIENCE)),
            "abort_transaction" => done(self.open_one().abort_transaction(PATIENCE)),
            "throttled" => Ok(Value::Null),
            _ => return None,
        })
    }

    fn open_one(&self) -> &OpenProducer {
        self.producer.as_ref().expect("a producer is open")
    }

    fn produce(&self, c: &Value) -> Answer {
        let mut settings = config(&self.bootstrap);
        settings
            .set("acks", text(c, "acks"))
            .set("compression.type", text(c, "compression"))
            .set("enable.idempotence", c["idempotent"].to_string())
            .set("linger.ms", "20")
            .set("batch.size", c["batch_bytes"].to_string())
            .set("message.max.bytes", c["max_request_bytes"].to_string());
        through(&create(&settings)?, c)
    }

    fn open(&mut self, c: &Value) -> Answer {
        let mut settings = config(&self.bootstrap);
        settings.set("client.id", text(c, "client_id")).set("linger.ms", "5");
        let transactional_id = c["transactional_id"].as_str();
        if let Some(id) = transactional_id {
            settings.set("transactional.id", id).set("transaction.timeout.ms", c["timeout_ms"].to_string());
        }
        let producer = create(&settings)?;
        if transactional_id.is_some() {
            producer.init_transactions(PATIENCE)?;
        }
        self.producer = Some(producer);
        Ok(json!(true))
    }

    pub fn send_offsets(&self, c: &Value, consuming: &Consuming) -> Answer {
        let offsets = partitions(&c["offsets"], |row| Offset::Offset(row[2].as_i64().unwrap()));
        done(self.open_one().send_offsets_to_transaction(&offsets, &consuming.group_metadata(), PATIENCE))
    }

    pub fn close(&mut self) {
        self.producer = None;
    }
}

fn create(settings: &ClientConfig) -> Result<OpenProducer, Failure> {
    Ok(settings.create_with_context(Deliveries)?)
}

fn done(outcome: Result<(), KafkaError>) -> Answer {
    outcome?;
    Ok(json!(true))
}

fn through(producer: &OpenProducer, c: &Value) -> Answer {
    let records = c["records"].as_array().expect("records");
    let outcomes: Outcomes = Arc::new(Mutex::new(vec![None; records.len()]));
    for (place, r) in records.iter().enumerate() {
        let mut headers = OwnedHeaders::new();
        for header in r["headers"].as_array().unwrap() {
            headers = headers.insert(Header { key: header[0].as_str().unwrap(), value: header[1].as_str() });
        }
        let record = BaseRecord {
            topic: text(c, "topic"),
            partition: Some(number(c, "partition") as i32),
            payload: r["value"].as_str(),
            key: r["key"].as_str(),
            timestamp: r["timestamp"].as_i64(),
            headers: Some(headers),
            delivery_opaque: Box::new((outcomes.clone(), place)),
        };
        producer.send(record).map_err(|(error, _)| error)?;
    }
    producer.flush(PATIENCE)?;
    let mut offsets = Vec::new();
    for outcome in outcomes.lock().unwrap().iter() {
        match outcome {
            Some(Ok(offset)) => offsets.push(*offset),
            Some(Err(error)) => return Err(error.clone().into()),
            None => return Err(Failure("not delivered".to_string(), None)),
        }
    }
    Ok(json!(offsets))
}

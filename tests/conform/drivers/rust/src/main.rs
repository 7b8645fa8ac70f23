//! Driver for rdkafka, the Rust crate over librdkafka: `rust-driver BOOTSTRAP`.
//! What a driver is stands in protocol.md one folder up.

mod administering;
mod consuming;
mod producing;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::ClientConfig;
use serde_json::{json, Value};
use std::io::BufRead;

/// What went wrong: a text, and the library's number when it has one.
pub struct Failure(String, Option<i32>);

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Failure {
        let code = match &error {
            KafkaError::Transaction(inner) => Some(inner.code()),
            other => other.rdkafka_error_code(),
        };
        Failure(error.to_string(), code.map(|one| one as i32))
    }
}

impl From<(String, RDKafkaErrorCode)> for Failure {
    fn from((name, code): (String, RDKafkaErrorCode)) -> Failure {
        Failure(format!("{name}: {code}"), Some(code as i32))
    }
}

impl From<RDKafkaErrorCode> for Failure {
    fn from(code: RDKafkaErrorCode) -> Failure {
        Failure(code.to_string(), Some(code as i32))
    }
}

pub type Answer = Result<Value, Failure>;

pub fn config(bootstrap: &str) -> ClientConfig {
    let mut found = ClientConfig::new();
    found.set("bootstrap.servers", bootstrap).set("log_level", "0");
    if let Ok(file) = std::env::var("CARD_SECURITY") {
        secure(&mut found, &serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON"));
    }
    found
}

/// TLS and the login, from the file that CARD_SECURITY names.
fn secure(found: &mut ClientConfig, way: &Value) {
    let names = [
        ("security.protocol", "protocol"),
        ("ssl.ca.location", "ca"),
        ("ssl.certificate.location", "certificate"),
        ("ssl.key.location", "key"),
        ("sasl.mechanism", "mechanism"),
        ("sasl.username", "user"),
        ("sasl.password", "password"),
    ];
    for (setting, name) in names {
        if let Some(value) = way[name].as_str() {
            found.set(setting, value);
        }
    }
}

/// A field that must be a text.
pub fn text<'a>(c: &'a Value, name: &str) -> &'a str {
    c[name].as_str().unwrap_or_else(|| panic!("{name} is not a text in {c}"))
}

pub fn number(c: &Value, name: &str) -> i64 {
    c[name].as_i64().unwrap_or_else(|| panic!("{name} is not a number in {c}"))
}

pub fn lossless(data: Option<&[u8]>) -> Value {
    data.map_or(Value::Null, |bytes| json!(String::from_utf8_lossy(bytes)))
}

fn version() -> Answer {
    let (_, library) = rdkafka::util::get_rdkafka_version();
    Ok(json!(format!("rdkafka {} (librdkafka {library})", env!("RDKAFKA_CRATE_VERSION"))))
}

fn main() {
    let bootstrap = std::env::args().nth(1).expect("an address");
    let mut producing = producing::Producing::new(&bootstrap);
    let mut consuming = consuming::Consuming::new(&bootstrap);
    let administering = administering::Administering::new(&bootstrap);
    for line in std::io::stdin().lock().lines() {
        let c: Value = serde_json::from_str(&line.expect("a line")).expect("a command");
        let command = text(&c, "do").to_string();
        let answer = match command.as_str() {
            "version" => version(),
            "close" => {
                consuming.close();
                producing.close();
                Ok(json!(true))
            }
            "send_offsets" => producing.send_offsets(&c, &consuming),
            other => producing
                .run(other, &c)
                .or_else(|| consuming.run(other, &c))
                .or_else(|| administering.run(other, &c))
                .unwrap_or_else(|| Err(Failure(format!("unknown command {other}"), None))),
        };
        match answer {
            Ok(value) => println!("{}", json!({ "ok": value })),
            Err(Failure(told, code)) => println!("{}", json!({ "error": told, "code": code })),
        }
        if command == "close" {
            return;
        }
    }
}

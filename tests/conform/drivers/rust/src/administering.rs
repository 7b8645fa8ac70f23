//! The admin client's commands.

use crate::consuming::{committed, partitions};
use crate::{config, number, text, Answer, Failure};
use futures::executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::Offset;
use serde_json::{json, Map, Value};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

pub struct Administering {
    bootstrap: String,
}

fn first<T>(outcomes: Vec<Result<T, impl Into<Failure>>>) -> Result<T, Failure> {
    outcomes.into_iter().next().expect("one outcome").map_err(Into::into)
}

impl Administering {
    pub fn new(bootstrap: &str) -> Administering {
        Administering { bootstrap: bootstrap.to_string() }
    }

    pub fn run(&self, command: &str, c: &Value) -> Option<Answer> {
        Some(match command {
            "create_topic" => self.create_topic(c),
            "list_topics" => self.list_topics(c),
            "describe_topic" => self.describe_topic(c),
            "add_partitions" => self.add_partitions(c),
            "delete_topic" => self.delete_topic(c),
            "alter_config" => self.alter_config(c),
            "describe_config" => self.describe_config(c),
            "delete_records" => self.delete_records(c),
            "list_groups" => self.list_groups(c),
            "describe_group" => self.describe_group(c),
            "group_offsets" => self.group_offsets(c),
            "delete_group" => self.delete_group(c),
            _ => return None,
        })
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>, Failure> {
        Ok(config(&self.bootstrap).create()?)
    }

    fn observer(&self, group: &str) -> Result<BaseConsumer, Failure> {
        Ok(config(&self.bootstrap).set("group.id", group).create()?)
    }

    fn create_topic(&self, c: &Value) -> Answer {
        let mut wanted = NewTopic::new(text(c, "topic"), number(c, "partitions") as i32, TopicReplication::Fixed(1));
        for (name, value) in c["config"].as_object().unwrap() {
            wanted = wanted.set(name, value.as_str().unwrap());
        }
        first(block_on(self.admin()?.create_topics(&[wanted], &AdminOptions::new()))?)?;
        Ok(json!(true))
    }

    fn list_topics(&self, c: &Value) -> Answer {
        let found = self.observer("no-group")?.fetch_metadata(None, PATIENCE)?;
        let names = found.topics().iter().map(|topic| topic.name());
        let mut names: Vec<&str> = names.filter(|name| name.starts_with(text(c, "prefix"))).collect();
        names.sort();
        Ok(json!(names))
    }

    fn describe_topic(&self, c: &Value) -> Answer {
        let found = self.observer("no-group")?.fetch_metadata(Some(text(c, "topic")), PATIENCE)?;
        let rows = found.topics()[0].partitions().iter();
        Ok(rows.map(|p| json!([p.id(), p.leader(), p.replicas(), p.isr()])).collect())
    }

    fn add_partitions(&self, c: &Value) -> Answer {
        let wanted = NewPartitions::new(text(c, "topic"), number(c, "total") as usize);
        first(block_on(self.admin()?.create_partitions(&[wanted], &AdminOptions::new()))?)?;
        Ok(json!(true))
    }

    fn delete_topic(&self, c: &Value) -> Answer {
        first(block_on(self.admin()?.delete_topics(&[text(c, "topic")], &AdminOptions::new()))?)?;
        Ok(json!(true))
    }

    fn alter_config(&self, c: &Value) -> Answer {
        let mut wanted = AlterConfig::new(ResourceSpecifier::Topic(text(c, "topic")));
        for (name, value) in c["config"].as_object().unwrap() {
            wanted = wanted.set(name, value.as_str().unwrap());
        }
        let outcomes = block_on(self.admin()?.alter_configs([&wanted], &AdminOptions::new()))?;
        first(outcomes.into_iter().map(|one| one.map_err(|(_, code)| code)).collect())?;
        Ok(json!(true))
    }

    fn describe_config(&self, c: &Value) -> Answer {
        let wanted = ResourceSpecifier::Topic(text(c, "topic"));
        let found = first(block_on(self.admin()?.describe_configs([&wanted], &AdminOptions::new()))?)?;
        let mut values = Map::new();
        for name in c["names"].as_array().unwrap() {
            let entry = found.get(name.as_str().unwrap());
            values.insert(name.as_str().unwrap().to_string(), json!(entry.and_then(|one| one.value.clone())));
        }
        Ok(Value::Object(values))
    }

    fn delete_records(&self, c: &Value) -> Answer {
        let row = json!([[c["topic"], c["partition"], c["offset"]]]);
        let wanted = partitions(&row, |one| Offset::Offset(one[2].as_i64().unwrap()));
        let found = block_on(self.admin()?.delete_records(&wanted, &AdminOptions::new()))?;
        found.elements()[0].error()?;
        Ok(json!(true))
    }

    fn list_groups(&self, c: &Value) -> Answer {
        let found = self.observer("no-group")?.fetch_group_list(None, PATIENCE)?;
        let names = found.groups().iter().map(|group| group.name());
        let mut names: Vec<&str> = names.filter(|name| name.starts_with(text(c, "prefix"))).collect();
        names.sort();
        Ok(json!(names))
    }

    fn describe_group(&self, c: &Value) -> Answer {
        let found = self.observer("no-group")?.fetch_group_list(Some(text(c, "group")), PATIENCE)?;
        let group = &found.groups()[0];
        Ok(json!([group.state().to_uppercase(), group.members().len()]))
    }

    fn group_offsets(&self, c: &Value) -> Answer {
        committed(&self.observer(text(c, "group"))?, &c["partitions"])
    }

    fn delete_group(&self, c: &Value) -> Answer {
        first(block_on(self.admin()?.delete_groups(&[text(c, "group")], &AdminOptions::new()))?)?;
        Ok(json!(true))
    }
}

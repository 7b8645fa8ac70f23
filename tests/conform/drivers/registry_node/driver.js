// Confluent's client of a schema registry for JavaScript: produces one order to a topic, or consumes some.
//
//   node driver.js produce BOOTSTRAP REGISTRY TOPIC SCHEMA ID
//   node driver.js consume BOOTSTRAP REGISTRY TOPIC COUNT
//
// KIND in the environment is AVRO or JSON. Each order is a line of JSON.
const {
  AvroDeserializer, AvroSerializer, JsonDeserializer, JsonSerializer, SchemaRegistryClient, SerdeType
} = require('@confluentinc/schemaregistry')
const { Kafka, logLevel } = require('kafkajs')

const [action, bootstrap, url, topic, given, id] = process.argv.slice(2)
const schemaType = process.env.KIND || 'AVRO'
const [Serializer, Deserializer] = {
  AVRO: [AvroSerializer, AvroDeserializer],
  JSON: [JsonSerializer, JsonDeserializer]
}[schemaType]
const registry = new SchemaRegistryClient({ baseURLs: [url] })
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })

async function produce () {
  await registry.register(`${topic}-value`, { schemaType, schema: given })
  const serializer = new Serializer(registry, SerdeType.VALUE, { useLatestVersion: true })
  const value = await serializer.serialize(topic, { id: Number(id), note: 'javascript' })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value }] })
  await producer.disconnect()
}

async function consume () {
  const deserializer = new Deserializer(registry, SerdeType.VALUE, {})
  const consumer = kafka.consumer({ groupId: 'registry-node' })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let left = Number(given)
  await new Promise((resolve, reject) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        try {
          console.log(JSON.stringify(await deserializer.deserialize(topic, message.value)))
        } catch (error) {
          reject(error)
        }
        left -= 1
        if (left === 0) resolve()
      }
    })
  })
  await consumer.disconnect()
}

(action === 'produce' ? produce() : consume()).then(() => process.exit(0), (error) => {
  console.error(error)
  process.exit(1)
})

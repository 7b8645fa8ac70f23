// Counts the goods in a store: each record says how many of an article came. docs/faults.md explains the planted bug.

const { Kafka, logLevel } = require('kafkajs')

// kafkajs retries for 1.5 seconds otherwise, and gives up a group whose coordinator has not loaded by then.
const retry = { initialRetryTime: 50, maxRetryTime: 500, retries: 20 }
const kafka = (servers) => new Kafka({ clientId: 'store', brokers: servers, logLevel: logLevel.NOTHING, retry })

async function deliver(servers, deliveries) {
  const producer = kafka(servers).producer()
  await producer.connect()
  for (const { id, article, count } of deliveries) {
    await producer.send({ topic: 'deliveries', messages: [{ key: id, value: JSON.stringify({ article, count }) }] })
  }
  await producer.disconnect()
}

// Read until the record with the key `last`, and return how many of each article there are.
async function count(servers, last, isMended) {
  const consumer = kafka(servers).consumer({ groupId: 'store' })
  const stock = {}
  const seen = new Set()
  try {
    await consumer.connect()
    await consumer.subscribe({ topic: 'deliveries', fromBeginning: true })
    await new Promise((resolve, reject) => {
      // After an error that may pass, such as a coordinator that is not ready yet, kafkajs starts the consumer again itself.
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error))
      const eachMessage = async ({ message }) => {
        const id = message.key.toString()
        if (id === last) resolve()
        // The planted bug: a delivery that the producer had to send again counts twice.
        if (isMended && seen.has(id)) return
        seen.add(id)
        const { article, count } = JSON.parse(message.value)
        stock[article] = (stock[article] ?? 0) + count
      }
      consumer.run({ eachMessage }).catch(reject)
    })
  } finally {
    // Also after an error: a consumer that is connected keeps the process from ending.
    await consumer.disconnect()
  }
  return stock
}

module.exports = { deliver, count }

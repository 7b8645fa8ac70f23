// Counts the goods in a store: each record says how many of an article came. docs/faults.md explains the planted bug.

const { Kafka, logLevel } = require('kafkajs')

const kafka = (servers) =>
  new Kafka({ clientId: 'store', brokers: servers, logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50 } })

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
  await consumer.connect()
  await consumer.subscribe({ topic: 'deliveries', fromBeginning: true })
  const stock = {}
  const seen = new Set()
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      eachMessage: async ({ message }) => {
        const id = message.key.toString()
        if (id === last) resolve()
        // The planted bug: a delivery that the producer had to send again counts twice.
        if (isMended && seen.has(id)) return
        seen.add(id)
        const { article, count } = JSON.parse(message.value)
        stock[article] = (stock[article] ?? 0) + count
      },
    })
  })
  await consumer.disconnect()
  return stock
}

module.exports = { deliver, count }

// Driver for kafkajs: `node driver.js BOOTSTRAP`. What a driver is stands in protocol.md one folder up.
//
// The library reads in groups only and calls back with batches: received rows wait in a list for the next poll, and a
// reader without a group is a group of one with a name of its own.
'use strict'

const { randomUUID } = require('node:crypto')
const { readFileSync } = require('node:fs')
const readline = require('node:readline')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const kafka = client('driver')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const text = data => (data === null || data === undefined ? null : data.toString())
const byName = (a, b) => (a < b ? -1 : a > b ? 1 : 0)

let producer = null
let transaction = null
let consumer = null
let group = null
let admin = null
let received = []
let owned = []

function client(clientId) {
  const retry = { initialRetryTime: 50, retries: 8 }
  return new Kafka({ clientId, brokers: process.argv[2].split(","), logLevel: logLevel.NOTHING, retry, ...secured() })
}

/** What the file that CARD_SECURITY names says of TLS and the login. */
function secured() {
  if (!process.env.CARD_SECURITY) return {}
  const way = JSON.parse(readFileSync(process.env.CARD_SECURITY))
  const ssl = { ca: readFileSync(way.ca) }
  if (way.certificate) Object.assign(ssl, { cert: readFileSync(way.certificate), key: readFileSync(way.key) })
  if (!way.mechanism) return { ssl }
  if (way.token_url) return { ssl, sasl: { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: await tokenOf(way) }) } }
  return { ssl, sasl: { mechanism: way.mechanism.toLowerCase(), username: way.user, password: way.password } }
}

/** A token, which the token server gives for the client's id and secret. */
async function tokenOf(way) {
  const basic = Buffer.from(`${way.user}:${way.password}`).toString('base64')
  const body = 'grant_type=client_credentials'
  const answer = await fetch(way.token_url, { method: 'POST', headers: { Authorization: `Basic ${basic}` }, body })
  return (await answer.json()).access_token
}

async function administrator() {
  if (admin === null) {
    admin = kafka.admin()
    await admin.connect()
  }
  return admin
}

function messageOf(record) {
  const headers = {}
  for (const [name, value] of record.headers) {
    headers[name] = name in headers ? [].concat(headers[name], value) : value
  }
  const message = { key: record.key, value: record.value, headers }
  return record.timestamp === undefined ? message : { ...message, timestamp: String(record.timestamp) }
}

/** The library makes one batch of one call, so calls are cut at the size of a batch. */
function* chunks(records, batchBytes) {
  let chunk = []
  let size = 0
  for (const record of records) {
    const more = (record.value || '').length + 100
    if (chunk.length > 0 && size + more > batchBytes) {
      yield chunk
      chunk = []
      size = 0
    }
    chunk.push(record)
    size += more
  }
  yield chunk
}

async function through(sender, { topic, partition, records, batch_bytes: batchBytes = 900000 }, how = {}) {
  const offsets = []
  for (const chunk of chunks(records, batchBytes)) {
    const messages = chunk.map(record => ({ ...messageOf(record), partition }))
    const [answer] = await sender.send({ topic, messages, ...how })
    chunk.forEach((_, index) => offsets.push(Number(answer.baseOffset) + index))
  }
  return offsets
}

async function join(groupId, topics, c, autoCommit = false) {
  group = groupId
  consumer = kafka.consumer({
    groupId,
    sessionTimeout: c.session_ms || 6000,
    heartbeatInterval: c.heartbeat_ms || 500,
    maxWaitTimeInMs: 200,
    readUncommitted: c.isolation === 'read_uncommitted',
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    owned = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) => partitions.map(p => [topic, p]))
  })
  consumer.on(consumer.events.REBALANCING, () => { owned = [] })
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  await consumer.run({
    autoCommit,
    eachBatch: async ({ batch, resolveOffset, isStale, heartbeat }) => {
      if (isStale()) return
      for (const m of batch.messages) {
        const headers = Object.entries(m.headers).flatMap(([name, value]) => [].concat(value).map(one => [name, text(one)]))
        received.push([batch.topic, batch.partition, Number(m.offset), text(m.key), text(m.value), headers])
        resolveOffset(m.offset)
      }
      await heartbeat()
    },
  })
}

async function committedOf(groupId, partitions) {
  const topics = [...new Set(partitions.map(([topic]) => topic))]
  const found = {}
  for (const { topic, partitions: rows } of await (await administrator()).fetchOffsets({ groupId, topics })) {
    for (const { partition, offset } of rows) found[`${topic}/${partition}`] = Number(offset)
  }
  return partitions.map(([topic, p]) => [topic, p, found[`${topic}/${p}`] >= 0 ? found[`${topic}/${p}`] : null])
}

const commands = {
  version: async () => `kafkajs ${require('kafkajs/package.json').version}`,

  async produce(c) {
    const how = { idempotent: c.idempotent, maxInFlightRequests: 1, createPartitioner: () => ({ message }) => message.partition }
    const once = kafka.producer(how)
    await once.connect()
    try {
      return await through(once, c, { acks: c.acks === 'all' ? -1 : Number(c.acks), compression: CODECS[c.compression] })
    } finally {
      await once.disconnect()
    }
  },

  async open_producer(c) {
    const how = { createPartitioner: () => ({ message }) => message.partition, maxInFlightRequests: 1 }
    if (c.transactional_id) Object.assign(how, { transactionalId: c.transactional_id, idempotent: true, transactionTimeout: c.timeout_ms })
    producer = client(c.client_id).producer(how)
    await producer.connect()
    return true
  },

  async begin() {
    transaction = await producer.transaction()
    return true
  },

  send: c => through(transaction || producer, c),

  async send_offsets(c) {
    const topics = {}
    for (const [topic, partition, offset] of c.offsets) (topics[topic] ||= []).push({ partition, offset: String(offset) })
    await transaction.sendOffsets({
      consumerGroupId: c.group,
      topics: Object.entries(topics).map(([topic, partitions]) => ({ topic, partitions })),
    })
    return true
  },

  async commit_transaction() {
    await transaction.commit()
    transaction = null
    return true
  },

  async abort_transaction() {
    await transaction.abort()
    transaction = null
    return true
  },

  throttled: async () => null,

  async subscribe(c) {
    join(c.group, c.topics, c).catch(() => process.exit(1)) // the first join waits for the group; the command does not
    return true
  },

  async assign(c) {
    if (c.group !== null) {
      group = c.group // what is committed is asked through the admin client; nothing is read
      return true
    }
    // A group that has committed nothing begins anew when its member joins again; a reader without a group would go on.
    await join(`reader-${randomUUID()}`, [...new Set(c.partitions.map(([topic]) => topic))], c, true)
    return true
  },

  async poll(c) {
    const deadline = Date.now() + c.timeout_ms
    while (received.length === 0 && Date.now() < deadline) await sleep(5)
    return received.splice(0, c.max)
  },

  assignment: async () => [...owned].sort((a, b) => byName(a[0], b[0]) || a[1] - b[1]),

  async commit(c) {
    await consumer.commitOffsets(c.offsets.map(([topic, partition, offset, metadata]) => ({ topic, partition, offset: String(offset), metadata })))
    return true
  },

  committed: c => committedOf(group, c.partitions),

  async seek(c) {
    consumer.seek({ topic: c.topic, partition: c.partition, offset: String(c.offset) })
    await sleep(500) // what is under way from the old position is received, and dropped
    received = received.filter(row => row[2] >= c.offset)
    const first = received.findIndex(row => row[2] === c.offset)
    if (first > 0) received.splice(0, first)
    return true
  },

  async bounds(c) {
    const found = await (await administrator()).fetchTopicOffsets(c.topic)
    const one = found.find(({ partition }) => partition === c.partition)
    return [Number(one.low), Number(one.high)]
  },

  async offset_for_time(c) {
    const found = await (await administrator()).fetchTopicOffsetsByTimestamp(c.topic, c.timestamp)
    const offset = Number(found.find(({ partition }) => partition === c.partition).offset)
    return offset < (await commands.bounds(c))[1] ? offset : null // it answers with the end when nothing is that new
  },

  async create_topic(c) {
    const configEntries = Object.entries(c.config).map(([name, value]) => ({ name, value }))
    const topics = [{ topic: c.topic, numPartitions: c.partitions, replicationFactor: 1, configEntries }]
    if (!await (await administrator()).createTopics({ topics })) {
      throw Object.assign(new Error('the topic is there already'), { code: 36 })
    }
    return true
  },

  list_topics: async c => (await (await administrator()).listTopics()).filter(name => name.startsWith(c.prefix)).sort(byName),

  async describe_topic(c) {
    const { topics } = await (await administrator()).fetchTopicMetadata({ topics: [c.topic] })
    return topics[0].partitions
      .map(p => [p.partitionId, p.leader, p.replicas, p.isr])
      .sort((a, b) => a[0] - b[0])
  },

  async add_partitions(c) {
    await (await administrator()).createPartitions({ topicPartitions: [{ topic: c.topic, count: c.total }] })
    return true
  },

  async delete_topic(c) {
    await (await administrator()).deleteTopics({ topics: [c.topic] })
    return true
  },

  async alter_config(c) {
    const configEntries = Object.entries(c.config).map(([name, value]) => ({ name, value }))
    await (await administrator()).alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: c.topic, configEntries }] })
    return true
  },

  async describe_config(c) {
    const query = { type: ConfigResourceTypes.TOPIC, name: c.topic, configNames: c.names }
    const { resources } = await (await administrator()).describeConfigs({ resources: [query], includeSynonyms: false })
    return Object.fromEntries(resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]))
  },

  async delete_records(c) {
    await (await administrator()).fetchTopicOffsets(c.topic) // the deletion does not load the topic's metadata by itself
    await (await administrator()).deleteTopicRecords({ topic: c.topic, partitions: [{ partition: c.partition, offset: String(c.offset) }] })
    return true
  },

  async list_groups(c) {
    const { groups } = await (await administrator()).listGroups()
    return groups.map(({ groupId }) => groupId).filter(name => name.startsWith(c.prefix)).sort(byName)
  },

  async describe_group(c) {
    const { groups: [found] } = await (await administrator()).describeGroups([c.group])
    return [found.state.toUpperCase(), found.members.length]
  },

  group_offsets: c => committedOf(c.group, c.partitions),

  async delete_group(c) {
    await (await administrator()).deleteGroups([c.group])
    return true
  },

  async close() {
    if (consumer) await consumer.disconnect()
    if (producer) await producer.disconnect()
    if (admin) await admin.disconnect()
    return true
  },
}

/** Kafka's number, from wherever the library has put it. */
function codeOf(error) {
  if (!error) return null
  if (typeof error.code === 'number') return error.code
  const inner = error.errors ? error.errors[0] : error.groups ? { code: error.groups[0].errorCode } : error.cause || error.originalError
  return codeOf(inner || (error.partitions && error.partitions[0]) || null)
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const c = JSON.parse(line)
    let answer
    try {
      answer = { ok: await commands[c.do](c) }
    } catch (error) {
      answer = { error: String(error), code: codeOf(error), trace: error.stack }
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`)
    if (c.do === 'close') process.exit(0)
  }
}

main()

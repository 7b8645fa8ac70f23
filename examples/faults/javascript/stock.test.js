// barnabas start --nodes 1 --faults 127.0.0.1:9900
//
//     npm install
//     node --test                        it fails: there are too many teapots
//     CONSUMER=mended node --test        it passes
//
// FAULTS names another address than http://127.0.0.1:9900.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { deliver, count } = require('./stock.js')

const FAULTS = process.env.FAULTS ?? 'http://127.0.0.1:9900'

async function ask(method, path, body) {
  const response = await fetch(FAULTS + path, { method, body: body && JSON.stringify(body) })
  const answer = await response.json()
  assert.ok(response.ok, answer.error)
  return answer
}

test('the stock is what was delivered', { timeout: 60_000 }, async () => {
  await ask('POST', '/reset')
  const servers = (await ask('GET', '/')).cluster.bootstrap_servers.split(',')
  await ask('POST', '/topics', { name: 'deliveries' })

  // The response to the second delivery is lost, and the producer sends it again.
  const fault =
    process.env.FAULT !== 'none' &&
    (await ask('POST', '/faults', { kind: 'drop_response', api: 'Produce', topic: 'deliveries', client_id: 'store', nth: 2 }))
  await deliver(servers, [
    { id: '1', article: 'teapot', count: 4 },
    { id: '2', article: 'teapot', count: 10 },
    { id: '3', article: 'cup', count: 24 },
    { id: 'last', article: 'cup', count: 0 },
  ])
  if (fault) assert.equal((await ask('GET', `/faults/${fault.id}`)).hits, 1)

  const stock = await count(servers, 'last', process.env.CONSUMER === 'mended')
  assert.deepEqual(stock, { teapot: 14, cup: 24 })
  const sent = await ask('GET', '/requests?api=Produce&topic=deliveries')
  assert.equal(sent.length, fault ? 5 : 4)
})

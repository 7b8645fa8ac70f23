package main

import (
	"time"

	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (d *driver) producing() map[string]loop.Handler {
	return map[string]loop.Handler{
		"produce":            d.produce,
		"open_producer":      d.openProducer,
		"begin":              d.begin,
		"send":               d.send,
		"send_offsets":       d.sendOffsets,
		"commit_transaction": func(*loop.Command) (any, error) { return d.end(kgo.TryCommit) },
		"abort_transaction":  func(*loop.Command) (any, error) { return d.end(kgo.TryAbort) },
		"throttled":          func(*loop.Command) (any, error) { return d.throttleMs.Load(), nil },
	}
}

func (d *driver) produce(c *loop.Command) (any, error) {
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[c.Compression]),
		kgo.ProducerBatchMaxBytes(c.MaxRequestBytes), kgo.ProducerLinger(20 * time.Millisecond),
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if c.Acks == "1" && !c.Idempotent {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	client, err := d.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return through(client, c)
}

func through(client *kgo.Client, c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	var records []*kgo.Record
	for _, r := range c.Records() {
		record := &kgo.Record{Topic: c.Topic, Partition: c.Partition, Key: loop.Data(r.Key), Value: loop.Data(r.Value)}
		for _, header := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *header[0], Value: loop.Data(header[1])})
		}
		if r.Timestamp != nil {
			record.Timestamp = time.UnixMilli(*r.Timestamp)
		}
		records = append(records, record)
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, 0, len(records))
	for _, record := range records {
		offsets = append(offsets, record.Offset)
	}
	return offsets, nil
}

// OnBrokerThrottle is the library's hook for throttle times.
func (d *driver) OnBrokerThrottle(_ kgo.BrokerMetadata, told time.Duration, _ bool) {
	d.throttleMs.Store(max(d.throttleMs.Load(), told.Milliseconds()))
}

func (d *driver) openProducer(c *loop.Command) (any, error) {
	options := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ClientID(c.ClientID), kgo.WithHooks(d),
		kgo.ProducerBatchCompression(kgo.NoCompression())}
	if c.TransactionalID != nil {
		options = append(options, kgo.TransactionalID(*c.TransactionalID), kgo.TransactionTimeout(loop.Milliseconds(c.TimeoutMs)))
		d.transactional = options
	}
	client, err := d.client(options...)
	if err != nil {
		return nil, err
	}
	d.producer = client
	if c.TransactionalID != nil {
		ctx, cancel := deadline()
		defer cancel()
		_, _, err = client.ProducerID(ctx)
	}
	return true, err
}

func (d *driver) begin(*loop.Command) (any, error) {
	if d.session != nil {
		return true, d.session.Begin()
	}
	return true, d.producer.BeginTransaction()
}

func (d *driver) send(c *loop.Command) (any, error) {
	if d.session != nil {
		return through(d.session.Client(), c)
	}
	return through(d.producer, c)
}

// The library's transactional session commits what it polled, as part of the end of the transaction.
func (d *driver) sendOffsets(*loop.Command) (any, error) {
	return true, nil
}

func (d *driver) end(how kgo.TransactionEndTry) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	if d.session != nil {
		committed, err := d.session.End(ctx, how)
		return committed == bool(how), err
	}
	if how == kgo.TryAbort {
		if err := d.producer.AbortBufferedRecords(ctx); err != nil {
			return nil, err
		}
	}
	return true, d.producer.EndTransaction(ctx, how)
}

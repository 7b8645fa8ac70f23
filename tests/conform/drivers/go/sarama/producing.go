package main

import (
	"errors"
	"strings"
	"time"

	"barnabas.test/drivers/loop"
	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func (d *driver) producerCommands() map[string]loop.Handler {
	return map[string]loop.Handler{
		"produce":            d.produce,
		"open_producer":      d.openProducer,
		"begin":              func(*loop.Command) (any, error) { return true, d.producer.BeginTxn() },
		"send":               func(c *loop.Command) (any, error) { return through(d.producer, c) },
		"send_offsets":       d.sendOffsets,
		"commit_transaction": func(*loop.Command) (any, error) { return true, d.producer.CommitTxn() },
		"abort_transaction":  func(*loop.Command) (any, error) { return true, d.producer.AbortTxn() },
		"throttled":          d.throttled,
	}
}

func idempotent(how *sarama.Config) {
	how.Producer.Idempotent = true
	how.Producer.RequiredAcks = sarama.WaitForAll
	how.Net.MaxOpenRequests = 1
}

func (d *driver) produce(c *loop.Command) (any, error) {
	how := config()
	how.Producer.Compression = codecs[c.Compression]
	how.Producer.MaxMessageBytes = int(c.MaxRequestBytes)
	how.Producer.Flush.Frequency = 20 * time.Millisecond
	how.Producer.RequiredAcks = sarama.WaitForAll
	if c.Acks == "1" {
		how.Producer.RequiredAcks = sarama.WaitForLocal
	}
	if c.Idempotent {
		idempotent(how)
	}
	producer, err := sarama.NewSyncProducer(d.addresses(), how)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	return through(producer, c)
}

func through(producer sarama.SyncProducer, c *loop.Command) (any, error) {
	var messages []*sarama.ProducerMessage
	for _, r := range c.Records() {
		message := &sarama.ProducerMessage{Topic: c.Topic, Partition: c.Partition}
		if r.Key != nil {
			message.Key = sarama.StringEncoder(*r.Key)
		}
		if r.Value != nil {
			message.Value = sarama.StringEncoder(*r.Value)
		}
		for _, header := range r.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(*header[0]), Value: loop.Data(header[1])})
		}
		if r.Timestamp != nil {
			message.Timestamp = time.UnixMilli(*r.Timestamp)
		}
		messages = append(messages, message)
	}
	if err := producer.SendMessages(messages); err != nil {
		var failed sarama.ProducerErrors
		if errors.As(err, &failed) {
			return nil, failed[0].Err
		}
		return nil, err
	}
	offsets := make([]int64, 0, len(messages))
	for _, message := range messages {
		offsets = append(offsets, message.Offset)
	}
	return offsets, nil
}

func (d *driver) openProducer(c *loop.Command) (any, error) {
	how := config()
	how.ClientID = c.ClientID
	if c.TransactionalID != nil {
		how.Producer.Transaction.ID = *c.TransactionalID
		how.Producer.Transaction.Timeout = loop.Milliseconds(c.TimeoutMs)
		idempotent(how)
	}
	producer, err := sarama.NewSyncProducer(d.addresses(), how)
	d.producer, d.producing = producer, how
	return true, err
}

func (d *driver) sendOffsets(c *loop.Command) (any, error) {
	offsets := make(map[string][]*sarama.PartitionOffsetMetadata)
	for _, one := range loop.Rows(c.Offsets) {
		offsets[one.Topic] = append(offsets[one.Topic],
			&sarama.PartitionOffsetMetadata{Partition: one.Partition, Offset: one.Offset, Metadata: &one.Metadata})
	}
	return true, d.producer.AddOffsetsToTxn(offsets, *c.Group)
}

func (d *driver) throttled(*loop.Command) (any, error) {
	longest := int64(0)
	d.producing.MetricRegistry.Each(func(name string, metric any) {
		if told, ok := metric.(metrics.Histogram); ok && strings.HasPrefix(name, "throttle-time-in-ms") {
			longest = max(longest, told.Max())
		}
	})
	return longest, nil
}

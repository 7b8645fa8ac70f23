package main

import (
	"context"
	"errors"
	"fmt"

	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var acknowledgements = map[string]kgo.AckStatus{"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject}

func (d *driver) sharing() map[string]loop.Handler {
	return map[string]loop.Handler{
		"share_subscribe": d.shareSubscribe, "share_poll": d.sharePoll, "share_acknowledge": d.shareAcknowledge,
	}
}

func (d *driver) shareSubscribe(c *loop.Command) (any, error) {
	client, err := d.client(kgo.ShareGroup(*c.Group), kgo.ConsumeTopics(c.Topics...))
	d.consumer = client
	d.acquired = make(map[string]*kgo.Record)
	return true, err
}

func acquiredKey(topic any, partition any, offset any) string {
	return fmt.Sprint(topic, "/", partition, "/", offset)
}

func (d *driver) sharePoll(c *loop.Command) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loop.Milliseconds(c.TimeoutMs))
	defer cancel()
	fetches := d.consumer.PollFetches(ctx)
	for _, one := range fetches.Errors() {
		if !errors.Is(one.Err, context.DeadlineExceeded) && !kerr.IsRetriable(one.Err) {
			return nil, one.Err
		}
	}
	rows := [][]any{}
	for _, r := range fetches.Records() {
		d.acquired[acquiredKey(r.Topic, r.Partition, r.Offset)] = r
		rows = append(rows, []any{r.Topic, r.Partition, r.Offset, loop.Text(r.Value), r.DeliveryCount()})
	}
	return rows, nil
}

func (d *driver) shareAcknowledge(c *loop.Command) (any, error) {
	for _, row := range c.Acknowledged() {
		key := acquiredKey(row[0], int(row[1].(float64)), int(row[2].(float64)))
		d.acquired[key].Ack(acknowledgements[row[3].(string)])
		delete(d.acquired, key)
	}
	ctx, cancel := deadline()
	defer cancel()
	return true, d.consumer.FlushAcks(ctx)
}

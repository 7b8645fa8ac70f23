package main

import (
	"context"
	"errors"
	"sort"
	"sync"

	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ownership is which partitions the group has given to this member.
type ownership struct {
	sync.Mutex
	partitions map[loop.TopicPartition]bool
}

func (o *ownership) set(partitions map[string][]int32, owned bool) {
	o.Lock()
	defer o.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			if owned {
				o.partitions[loop.TopicPartition{Topic: topic, Partition: number}] = true
			} else {
				delete(o.partitions, loop.TopicPartition{Topic: topic, Partition: number})
			}
		}
	}
}

func (d *driver) consuming() map[string]loop.Handler {
	return map[string]loop.Handler{
		"subscribe": d.subscribe, "assign": d.assign, "poll": d.poll, "assignment": d.assignment, "commit": d.commit,
		"committed": d.committed, "seek": d.seek, "bounds": d.bounds, "offset_for_time": d.offsetForTime,
	}
}

func isolation(c *loop.Command) kgo.Opt {
	if c.Isolation == "read_committed" {
		return kgo.FetchIsolationLevel(kgo.ReadCommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
}

func (d *driver) subscribe(c *loop.Command) (any, error) {
	d.group = *c.Group
	d.owned.partitions = make(map[loop.TopicPartition]bool)
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { d.owned.set(gone, false) }
	options := []kgo.Opt{
		kgo.ConsumerGroup(*c.Group), kgo.ConsumeTopics(c.Topics...), isolation(c),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, more map[string][]int32) { d.owned.set(more, true) }),
	}
	if c.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		options = append(options, kgo.Balancers(balancers[c.Strategy]), kgo.SessionTimeout(loop.Milliseconds(c.SessionMs)),
			kgo.HeartbeatInterval(loop.Milliseconds(c.HeartbeatMs)))
	}
	if c.Instance != nil {
		options = append(options, kgo.InstanceID(*c.Instance))
	}
	var err error
	if d.transactional != nil {
		d.producer.Close()
		d.producer = nil
		options = append(append(append(options, d.transactional...), secured()...), kgo.SeedBrokers(d.bootstrap...))
		d.session, err = kgo.NewGroupTransactSession(options...)
		if err == nil {
			d.consumer = d.session.Client()
		}
	} else {
		d.consumer, err = d.client(append(options, kgo.DisableAutoCommit())...)
	}
	return true, err
}

func (d *driver) assign(c *loop.Command) (any, error) {
	wanted := make(map[string]map[int32]kgo.Offset)
	for _, one := range c.Partitions() {
		if wanted[one.Topic] == nil {
			wanted[one.Topic] = make(map[int32]kgo.Offset)
		}
		wanted[one.Topic][one.Partition] = kgo.NewOffset().AtStart()
	}
	if c.Group != nil { // what is committed is asked through the admin client; nothing is read
		d.group = *c.Group
		return true, nil
	}
	client, err := d.client(kgo.ConsumePartitions(wanted), isolation(c))
	d.consumer = client
	return true, err
}

func (d *driver) poll(c *loop.Command) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loop.Milliseconds(c.TimeoutMs))
	defer cancel()
	fetches := d.consumer.PollRecords(ctx, c.Max)
	for _, one := range fetches.Errors() {
		if !errors.Is(one.Err, context.DeadlineExceeded) && !kerr.IsRetriable(one.Err) {
			return nil, one.Err
		}
	}
	rows := [][]any{}
	for _, r := range fetches.Records() {
		headers := [][]any{}
		for _, h := range r.Headers {
			headers = append(headers, []any{h.Key, loop.Text(h.Value)})
		}
		rows = append(rows, []any{r.Topic, r.Partition, r.Offset, loop.Text(r.Key), loop.Text(r.Value), headers})
	}
	return rows, nil
}

func (d *driver) assignment(*loop.Command) (any, error) {
	d.owned.Lock()
	defer d.owned.Unlock()
	rows := [][]any{}
	for one := range d.owned.partitions {
		rows = append(rows, []any{one.Topic, one.Partition})
	}
	sort.Slice(rows, func(i, j int) bool {
		if rows[i][0] != rows[j][0] {
			return rows[i][0].(string) < rows[j][0].(string)
		}
		return rows[i][1].(int32) < rows[j][1].(int32)
	})
	return rows, nil
}

func epochOffsets(rows []loop.TopicPartition) map[string]map[int32]kgo.EpochOffset {
	found := make(map[string]map[int32]kgo.EpochOffset)
	for _, one := range rows {
		if found[one.Topic] == nil {
			found[one.Topic] = make(map[int32]kgo.EpochOffset)
		}
		found[one.Topic][one.Partition] = kgo.EpochOffset{Epoch: -1, Offset: one.Offset}
	}
	return found
}

func (d *driver) seek(c *loop.Command) (any, error) {
	d.consumer.SetOffsets(epochOffsets([]loop.TopicPartition{{Topic: c.Topic, Partition: c.Partition, Offset: c.Offset}}))
	return true, nil
}

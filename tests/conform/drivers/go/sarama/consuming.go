package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"barnabas.test/drivers/loop"
	"github.com/IBM/sarama"
)

// queue is what the library's goroutines have received and no poll has taken yet.
type queue struct {
	sync.Mutex
	messages []*sarama.ConsumerMessage
}

func (q *queue) put(message *sarama.ConsumerMessage) {
	q.Lock()
	defer q.Unlock()
	q.messages = append(q.messages, message)
}

func (q *queue) take(most int) []*sarama.ConsumerMessage {
	q.Lock()
	defer q.Unlock()
	count := min(most, len(q.messages))
	taken := q.messages[:count]
	q.messages = q.messages[count:]
	return taken
}

func (q *queue) clear() {
	q.Lock()
	defer q.Unlock()
	q.messages = nil
}

// member is a member of a group: the library calls it back in each generation.
type member struct {
	sync.Mutex
	received *queue
	group    sarama.ConsumerGroup
	session  sarama.ConsumerGroupSession
	cancel   context.CancelFunc
	ended    chan struct{}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.Lock()
	defer m.Unlock()
	m.session = session
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.Lock()
	defer m.Unlock()
	m.session = nil
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			m.received.put(message)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) run(ctx context.Context, topics []string) {
	defer close(m.ended)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, topics, m); err != nil {
			time.Sleep(50 * time.Millisecond) // the next attempt joins again
		}
	}
}

func (m *member) current() sarama.ConsumerGroupSession {
	m.Lock()
	defer m.Unlock()
	return m.session
}

func (m *member) close() {
	m.cancel()
	<-m.ended
	m.group.Close()
}

func (d *driver) consumerCommands() map[string]loop.Handler {
	return map[string]loop.Handler{
		"subscribe": d.subscribe, "assign": d.assign, "poll": d.poll, "assignment": d.assignment, "commit": d.commit,
		"committed": d.committed, "seek": d.seek, "bounds": d.bounds, "offset_for_time": d.offsetForTime,
	}
}

func reading(c *loop.Command) *sarama.Config {
	how := config()
	if c.Isolation == "read_committed" {
		how.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	return how
}

func (d *driver) subscribe(c *loop.Command) (any, error) {
	strategies := map[string]sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(),
		"cooperative-sticky": sarama.NewBalanceStrategySticky(), // it has no cooperative one
	}
	how := reading(c)
	how.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[c.Strategy]}
	how.Consumer.Group.Session.Timeout = loop.Milliseconds(c.SessionMs)
	how.Consumer.Group.Heartbeat.Interval = loop.Milliseconds(c.HeartbeatMs)
	if c.Instance != nil {
		how.Consumer.Group.InstanceId = *c.Instance
	}
	group, err := sarama.NewConsumerGroup(d.addresses(), *c.Group, how)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.groupID = *c.Group
	d.group = &member{received: &d.received, group: group, cancel: cancel, ended: make(chan struct{})}
	go d.group.run(ctx, c.Topics)
	return true, nil
}

func (d *driver) assign(c *loop.Command) (any, error) {
	if c.Group != nil { // what is committed is asked through the admin client; nothing is read
		d.groupID = *c.Group
		return true, nil
	}
	consumer, err := sarama.NewConsumer(d.addresses(), reading(c))
	if err != nil {
		return nil, err
	}
	d.consumer = consumer
	d.readers = make(map[loop.TopicPartition]sarama.PartitionConsumer)
	for _, one := range c.Partitions() {
		if err := d.read(one, sarama.OffsetOldest); err != nil {
			return nil, err
		}
	}
	return true, nil
}

func (d *driver) read(one loop.TopicPartition, offset int64) error {
	reader, err := d.consumer.ConsumePartition(one.Topic, one.Partition, offset)
	if err != nil {
		return err
	}
	d.readers[one] = reader
	go func() {
		for message := range reader.Messages() {
			d.received.put(message)
		}
	}()
	return nil
}

func (d *driver) seek(c *loop.Command) (any, error) {
	one := loop.TopicPartition{Topic: c.Topic, Partition: c.Partition}
	if err := d.readers[one].Close(); err != nil {
		return nil, err
	}
	d.received.clear()
	return true, d.read(one, c.Offset)
}

func (d *driver) poll(c *loop.Command) (any, error) {
	deadline := time.Now().Add(loop.Milliseconds(c.TimeoutMs))
	messages := d.received.take(c.Max)
	for len(messages) == 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
		messages = d.received.take(c.Max)
	}
	rows := [][]any{}
	for _, m := range messages {
		headers := [][]any{}
		for _, h := range m.Headers {
			headers = append(headers, []any{string(h.Key), loop.Text(h.Value)})
		}
		rows = append(rows, []any{m.Topic, m.Partition, m.Offset, loop.Text(m.Key), loop.Text(m.Value), headers})
	}
	return rows, nil
}

func (d *driver) assignment(*loop.Command) (any, error) {
	rows := [][]any{}
	if session := d.group.current(); session != nil {
		for topic, partitions := range session.Claims() {
			sort.Slice(partitions, func(i, j int) bool { return partitions[i] < partitions[j] })
			for _, partition := range partitions {
				rows = append(rows, []any{topic, partition})
			}
		}
	}
	return rows, nil
}

func (d *driver) commit(c *loop.Command) (any, error) {
	session := d.group.current()
	if session == nil {
		return nil, fmt.Errorf("no generation to commit in")
	}
	for _, one := range loop.Rows(c.Offsets) {
		session.MarkOffset(one.Topic, one.Partition, one.Offset, one.Metadata)
	}
	session.Commit()
	return true, nil
}

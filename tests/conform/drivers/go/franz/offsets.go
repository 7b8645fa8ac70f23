package main

import (
	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (d *driver) commit(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	var failed error
	d.consumer.CommitOffsetsSync(ctx, epochOffsets(loop.Rows(c.Offsets)),
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if err != nil {
				return
			}
			for _, topic := range response.Topics {
				for _, partition := range topic.Partitions {
					if problem := kerr.ErrorForCode(partition.ErrorCode); problem != nil {
						failed = problem
					}
				}
			}
		})
	return true, failed
}

func (d *driver) committed(c *loop.Command) (any, error) {
	return d.committedOf(d.group, c.Partitions())
}

func (d *driver) groupOffsets(c *loop.Command) (any, error) {
	return d.committedOf(*c.Group, c.Partitions())
}

func (d *driver) committedOf(group string, partitions []loop.TopicPartition) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().FetchOffsets(ctx, group)
	if err == nil {
		err = found.Error()
	}
	rows := [][]any{}
	for _, one := range partitions {
		offset := int64(-1)
		if there, ok := found.Lookup(one.Topic, one.Partition); ok {
			offset = there.At
		}
		rows = append(rows, []any{one.Topic, one.Partition, loop.Offset(offset)})
	}
	return rows, err
}

func (d *driver) bounds(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	begin, err := d.administrator().ListStartOffsets(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	end, err := d.administrator().ListEndOffsets(ctx, c.Topic)
	return []int64{begin[c.Topic][c.Partition].Offset, end[c.Topic][c.Partition].Offset}, err
}

// ListOffsetsAfterMilli answers with the end of the partition when nothing is that new, with -1 as its time.
func (d *driver) offsetForTime(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().ListOffsetsAfterMilli(ctx, c.Timestamp, c.Topic)
	if err != nil {
		return nil, err
	}
	one := found[c.Topic][c.Partition]
	if one.Timestamp < 0 {
		return nil, one.Err
	}
	return loop.Offset(one.Offset), one.Err
}

func (d *driver) administrator() *kadm.Client {
	if d.admin == nil {
		client, err := d.client()
		if err != nil {
			panic(err)
		}
		d.admin = kadm.NewClient(client)
	}
	return d.admin
}

package main

import (
	"sort"
	"strings"

	"barnabas.test/drivers/loop"
	"github.com/IBM/sarama"
)

func (d *driver) adminCommands() map[string]loop.Handler {
	return map[string]loop.Handler{
		"create_topic": d.createTopic, "list_topics": d.listTopics, "describe_topic": d.describeTopic,
		"add_partitions": func(c *loop.Command) (any, error) {
			return true, d.administrator().CreatePartitions(c.Topic, int32(c.Total), nil, false)
		},
		"delete_topic": func(c *loop.Command) (any, error) { return true, d.administrator().DeleteTopic(c.Topic) },
		"alter_config": d.alterConfig, "describe_config": d.describeConfig,
		"delete_records": func(c *loop.Command) (any, error) {
			return true, d.administrator().DeleteRecords(c.Topic, map[int32]int64{c.Partition: c.Offset})
		},
		"list_groups": d.listGroups, "describe_group": d.describeGroup, "group_offsets": d.groupOffsets,
		"delete_offsets": func(c *loop.Command) (any, error) {
			return true, d.administrator().DeleteConsumerGroupOffset(*c.Group, c.Topic, c.Partition)
		},
		"delete_group": func(c *loop.Command) (any, error) { return true, d.administrator().DeleteConsumerGroup(*c.Group) },
	}
}

func (d *driver) administrator() sarama.ClusterAdmin {
	if d.admin == nil {
		client, err := sarama.NewClient(d.addresses(), config())
		if err != nil {
			panic(err)
		}
		d.client = client
		if d.admin, err = sarama.NewClusterAdminFromClient(client); err != nil {
			panic(err)
		}
	}
	return d.admin
}

func sortedWithPrefix[V any](names map[string]V, prefix string) []string {
	found := []string{}
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	sort.Strings(found)
	return found
}

func (d *driver) createTopic(c *loop.Command) (any, error) {
	config := make(map[string]*string)
	for name, value := range c.Config {
		config[name] = &value
	}
	wanted := &sarama.TopicDetail{NumPartitions: c.Count(), ReplicationFactor: 1, ConfigEntries: config}
	return true, d.administrator().CreateTopic(c.Topic, wanted, false)
}

func (d *driver) listTopics(c *loop.Command) (any, error) {
	found, err := d.administrator().ListTopics()
	return sortedWithPrefix(found, c.Prefix), err
}

func (d *driver) describeTopic(c *loop.Command) (any, error) {
	found, err := d.administrator().DescribeTopics([]string{c.Topic})
	if err != nil {
		return nil, err
	}
	if found[0].Err != sarama.ErrNoError {
		return nil, found[0].Err
	}
	partitions := found[0].Partitions
	sort.Slice(partitions, func(i, j int) bool { return partitions[i].ID < partitions[j].ID })
	rows := [][]any{}
	for _, p := range partitions {
		rows = append(rows, []any{p.ID, p.Leader, p.Replicas, p.Isr})
	}
	return rows, nil
}

func (d *driver) alterConfig(c *loop.Command) (any, error) {
	changes := make(map[string]sarama.IncrementalAlterConfigsEntry)
	for name, value := range c.Config {
		changes[name] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
	}
	return true, d.administrator().IncrementalAlterConfig(sarama.TopicResource, c.Topic, changes, false)
}

func (d *driver) describeConfig(c *loop.Command) (any, error) {
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: c.Topic, ConfigNames: c.Names}
	entries, err := d.administrator().DescribeConfig(resource)
	found := make(map[string]string)
	for _, entry := range entries {
		found[entry.Name] = entry.Value
	}
	return found, err
}

func (d *driver) listGroups(c *loop.Command) (any, error) {
	found, err := d.administrator().ListConsumerGroups()
	return sortedWithPrefix(found, c.Prefix), err
}

func (d *driver) describeGroup(c *loop.Command) (any, error) {
	found, err := d.administrator().DescribeConsumerGroups([]string{*c.Group})
	if err != nil {
		return nil, err
	}
	if found[0].Err != sarama.ErrNoError {
		return nil, found[0].Err
	}
	return []any{strings.ToUpper(found[0].State), len(found[0].Members)}, nil
}

func (d *driver) groupOffsets(c *loop.Command) (any, error) {
	return d.committedOf(*c.Group, c.Partitions())
}

func (d *driver) committed(c *loop.Command) (any, error) {
	return d.committedOf(d.groupID, c.Partitions())
}

func (d *driver) committedOf(group string, partitions []loop.TopicPartition) (any, error) {
	wanted := make(map[string][]int32)
	for _, one := range partitions {
		wanted[one.Topic] = append(wanted[one.Topic], one.Partition)
	}
	found, err := d.administrator().ListConsumerGroupOffsets(group, wanted)
	if err != nil {
		return nil, err
	}
	rows := [][]any{}
	for _, one := range partitions {
		offset := int64(-1)
		if block := found.GetBlock(one.Topic, one.Partition); block != nil {
			offset = block.Offset
		}
		rows = append(rows, []any{one.Topic, one.Partition, loop.Offset(offset)})
	}
	return rows, nil
}

func (d *driver) bounds(c *loop.Command) (any, error) {
	d.administrator()
	begin, err := d.client.GetOffset(c.Topic, c.Partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	end, err := d.client.GetOffset(c.Topic, c.Partition, sarama.OffsetNewest)
	return []int64{begin, end}, err
}

func (d *driver) offsetForTime(c *loop.Command) (any, error) {
	d.administrator()
	offset, err := d.client.GetOffset(c.Topic, c.Partition, c.Timestamp)
	return loop.Offset(offset), err
}

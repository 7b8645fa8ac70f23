package main

import (
	"strings"

	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kadm"
)

func (d *driver) administering() map[string]loop.Handler {
	return map[string]loop.Handler{
		"create_topic": d.createTopic, "list_topics": d.listTopics, "describe_topic": d.describeTopic,
		"add_partitions": d.addPartitions, "delete_topic": d.deleteTopic, "alter_config": d.alterConfig,
		"describe_config": d.describeConfig, "delete_records": d.deleteRecords, "list_groups": d.listGroups,
		"describe_group": d.describeGroup, "group_offsets": d.groupOffsets, "delete_offsets": d.deleteOffsets,
		"delete_group": d.deleteGroup,
	}
}

func withPrefix(names []string, prefix string) []string {
	found := []string{}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}

func (d *driver) createTopic(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	config := make(map[string]*string)
	for name, value := range c.Config {
		config[name] = &value
	}
	_, err := d.administrator().CreateTopic(ctx, c.Count(), 1, config, c.Topic)
	return true, err
}

func (d *driver) listTopics(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().ListTopics(ctx)
	return withPrefix(found.Names(), c.Prefix), err
}

func (d *driver) describeTopic(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().ListTopics(ctx, c.Topic)
	if err == nil {
		err = found.Error()
	}
	rows := [][]any{}
	for _, p := range found[c.Topic].Partitions.Sorted() {
		// The library has no slice for a partition that nobody leads just now.
		rows = append(rows, []any{p.Partition, p.Leader, append([]int32{}, p.Replicas...), append([]int32{}, p.ISR...)})
	}
	return rows, err
}

func (d *driver) addPartitions(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().UpdatePartitions(ctx, c.Total, c.Topic)
	if err == nil {
		err = found.Error()
	}
	return true, err
}

func (d *driver) deleteTopic(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	_, err := d.administrator().DeleteTopic(ctx, c.Topic)
	return true, err
}

func (d *driver) alterConfig(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	var changes []kadm.AlterConfig
	for name, value := range c.Config {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	found, err := d.administrator().AlterTopicConfigs(ctx, changes, c.Topic)
	for _, one := range found {
		if err == nil {
			err = one.Err
		}
	}
	return true, err
}

func (d *driver) describeConfig(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	resources, err := d.administrator().DescribeTopicConfigs(ctx, c.Topic)
	found := make(map[string]*string)
	for _, resource := range resources {
		for _, name := range c.Names {
			for _, entry := range resource.Configs {
				if entry.Key == name {
					found[name] = entry.Value
				}
			}
		}
	}
	return found, err
}

func (d *driver) deleteRecords(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	var offsets kadm.Offsets
	offsets.AddOffset(c.Topic, c.Partition, c.Offset, -1)
	found, err := d.administrator().DeleteRecords(ctx, offsets)
	if err == nil {
		err = found.Error()
	}
	return true, err
}

func (d *driver) listGroups(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().ListGroups(ctx)
	return withPrefix(found.Groups(), c.Prefix), err
}

func (d *driver) describeGroup(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := d.administrator().DescribeGroups(ctx, *c.Group)
	if err == nil {
		err = found.Error()
	}
	group := found[*c.Group]
	return []any{strings.ToUpper(group.State), len(group.Members)}, err
}

func (d *driver) deleteOffsets(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	var partitions kadm.TopicsSet
	partitions.Add(c.Topic, c.Partition)
	found, err := d.administrator().DeleteOffsets(ctx, *c.Group, partitions)
	if err == nil {
		err = found.Error()
	}
	return true, err
}

func (d *driver) deleteGroup(c *loop.Command) (any, error) {
	ctx, cancel := deadline()
	defer cancel()
	_, err := d.administrator().DeleteGroup(ctx, *c.Group)
	return true, err
}

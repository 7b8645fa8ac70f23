// Package mailer sends a mail for every order. Its test finds a planted bug by a fault; docs/faults.md explains it.
package mailer

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Run reads orders until want of them were seen, and calls send for each. It reads few orders at a time, so that it commits often.
func Run(ctx context.Context, servers []string, want int, isMended bool, send func(order string)) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(servers...),
		kgo.ConsumerGroup("mailer"),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for seen := 0; seen < want; {
		fetches := client.PollRecords(ctx, 3)
		if err := ctx.Err(); err != nil {
			return err
		}
		records := fetches.Records()
		seen += len(records)
		if isMended {
			for _, record := range records {
				send(string(record.Value))
			}
			// A commit that fails is made up for by the next one; a mail may come twice, and none is missing.
			_ = client.CommitRecords(ctx, records...)
			continue
		}
		// The planted bug: it commits first, and when that fails it goes on with the next orders.
		if err := client.CommitRecords(ctx, records...); err != nil {
			continue
		}
		for _, record := range records {
			send(string(record.Value))
		}
	}
	return nil
}

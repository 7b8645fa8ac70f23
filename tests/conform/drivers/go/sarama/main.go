// Driver for sarama: `sarama BOOTSTRAP`.
package main

import (
	"errors"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"barnabas.test/drivers/loop"
	"github.com/IBM/sarama"
)

type driver struct {
	bootstrap []string
	producer  sarama.SyncProducer
	producing *sarama.Config
	consumer  sarama.Consumer
	readers   map[loop.TopicPartition]sarama.PartitionConsumer
	group     *member
	groupID   string
	received  queue
	admin     sarama.ClusterAdmin
	client    sarama.Client
}

func main() {
	d := &driver{bootstrap: strings.Split(os.Args[1], ",")}
	handlers := map[string]loop.Handler{"version": version, "close": d.close}
	maps.Copy(handlers, d.producerCommands())
	maps.Copy(handlers, d.consumerCommands())
	maps.Copy(handlers, d.adminCommands())
	loop.Serve(handlers, func(err error) *int16 {
		var known sarama.KError
		if errors.As(err, &known) {
			code := int16(known)
			return &code
		}
		return nil
	})
}

func version(*loop.Command) (any, error) {
	found, _ := debug.ReadBuildInfo()
	for _, module := range found.Deps {
		if module.Path == "github.com/IBM/sarama" {
			return "sarama " + module.Version, nil
		}
	}
	return nil, errors.New("built without modules")
}

func config() *sarama.Config {
	found := sarama.NewConfig()
	found.Version = sarama.MaxVersion
	found.Producer.Return.Successes = true
	found.Producer.Partitioner = sarama.NewManualPartitioner
	found.Consumer.Offsets.Initial = sarama.OffsetOldest
	found.Consumer.Offsets.AutoCommit.Enable = false
	found.Metadata.Retry.Backoff = 100 * time.Millisecond
	// Three would be used up after 0.4 s, while a broker that has just started takes its partitions.
	found.Producer.Retry.Max = 50
	secure(found)
	return found
}

func (d *driver) addresses() []string {
	return d.bootstrap
}

func (d *driver) close(*loop.Command) (any, error) {
	if d.group != nil {
		d.group.close()
	}
	if d.producer != nil {
		return true, d.producer.Close()
	}
	return true, nil
}

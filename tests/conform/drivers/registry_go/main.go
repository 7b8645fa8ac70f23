// franz-go's client of a schema registry: produces one order to a topic, or consumes some.
//
//	registry-go produce BOOTSTRAP REGISTRY TOPIC SCHEMA ID
//	registry-go consume BOOTSTRAP REGISTRY TOPIC COUNT
//
// Each order is a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

type order struct {
	ID   int64   `avro:"id" json:"id"`
	Note *string `avro:"note" json:"note"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// register adds the codec of a schema under its id.
func register(serde *sr.Serde, id int, text string) {
	schema, err := avro.Parse(text)
	check(err)
	serde.Register(id, order{},
		sr.EncodeFn(func(v any) ([]byte, error) { return avro.Marshal(schema, v) }),
		sr.DecodeFn(func(data []byte, v any) error { return avro.Unmarshal(schema, data, v) }),
	)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	action, bootstrap, url, topic := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	registry, err := sr.NewClient(sr.URLs(url))
	check(err)
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic))
	check(err)
	defer client.Close()
	var serde sr.Serde
	if action == "produce" {
		found, err := registry.CreateSchema(ctx, topic+"-value", sr.Schema{Schema: os.Args[5], Type: sr.TypeAvro})
		check(err)
		register(&serde, found.ID, found.Schema.Schema)
		number, err := strconv.ParseInt(os.Args[6], 10, 64)
		check(err)
		note := "franz-go"
		value, err := serde.Encode(order{number, &note})
		check(err)
		check(client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr())
		return
	}
	count, err := strconv.Atoi(os.Args[5])
	check(err)
	for count > 0 {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			id, _, err := serde.DecodeID(record.Value)
			check(err)
			if !serde.IsRegistered(id) {
				schema, err := registry.SchemaByID(ctx, id)
				check(err)
				register(&serde, id, schema.Schema)
			}
			var found order
			check(serde.Decode(record.Value, &found))
			line, err := json.Marshal(found)
			check(err)
			fmt.Println(string(line))
			count--
		})
	}
}

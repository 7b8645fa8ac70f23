// Package loop is the part both Go drivers share: commands in, answers out (see protocol.md in the folder above).
package loop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// Record is one record to produce.
type Record struct {
	Key       *string      `json:"key"`
	Value     *string      `json:"value"`
	Headers   [][2]*string `json:"headers"`
	Timestamp *int64       `json:"timestamp"`
}

// Command holds the fields of every command; fields whose shape differs between commands stay raw.
type Command struct {
	Do              string            `json:"do"`
	Topic           string            `json:"topic"`
	Partition       int32             `json:"partition"`
	Offset          int64             `json:"offset"`
	Timestamp       int64             `json:"timestamp"`
	RawRecords      json.RawMessage   `json:"records"`
	Compression     string            `json:"compression"`
	Acks            string            `json:"acks"`
	Idempotent      bool              `json:"idempotent"`
	BatchBytes      int32             `json:"batch_bytes"`
	MaxRequestBytes int32             `json:"max_request_bytes"`
	TransactionalID *string           `json:"transactional_id"`
	ClientID        string            `json:"client_id"`
	TimeoutMs       int64             `json:"timeout_ms"`
	Group           *string           `json:"group"`
	Topics          []string          `json:"topics"`
	Protocol        string            `json:"protocol"`
	Strategy        string            `json:"strategy"`
	SessionMs       int64             `json:"session_ms"`
	HeartbeatMs     int64             `json:"heartbeat_ms"`
	Instance        *string           `json:"instance"`
	Isolation       string            `json:"isolation"`
	RawPartitions   json.RawMessage   `json:"partitions"`
	Offsets         [][]any           `json:"offsets"`
	Max             int               `json:"max"`
	Config          map[string]string `json:"config"`
	Names           []string          `json:"names"`
	Prefix          string            `json:"prefix"`
	Total           int               `json:"total"`
}

// TopicPartition is a topic and a partition, and where a command has it an offset.
type TopicPartition struct {
	Topic     string
	Partition int32
	Offset    int64
	Metadata  string
}

// Records are the records of a command that produces.
func (c *Command) Records() (found []Record) {
	must(json.Unmarshal(c.RawRecords, &found))
	return found
}

// Acknowledged are the rows of share_acknowledge.
func (c *Command) Acknowledged() (found [][]any) {
	must(json.Unmarshal(c.RawRecords, &found))
	return found
}

// Count is the number of partitions of a topic to create.
func (c *Command) Count() (found int32) {
	must(json.Unmarshal(c.RawPartitions, &found))
	return found
}

// Partitions are the partitions that a consumer's command names.
func (c *Command) Partitions() []TopicPartition {
	var rows [][]any
	must(json.Unmarshal(c.RawPartitions, &rows))
	return Rows(rows)
}

// Rows turns rows of topic, partition and perhaps offset and metadata into structs.
func Rows(rows [][]any) (found []TopicPartition) {
	for _, row := range rows {
		one := TopicPartition{Topic: row[0].(string), Partition: int32(row[1].(float64))}
		if len(row) > 2 {
			one.Offset = int64(row[2].(float64))
		}
		if len(row) > 3 {
			one.Metadata = row[3].(string)
		}
		found = append(found, one)
	}
	return found
}

// Text is the text of bytes, or nil.
func Text(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// Data is the bytes of a text, or nil; an empty text is not nil.
func Data(text *string) []byte {
	if text == nil {
		return nil
	}
	return append([]byte{}, *text...)
}

// Milliseconds is a duration from a command's field.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(ms) * time.Millisecond
}

// Offset is an offset as an answer gives it: null where there is none.
func Offset(offset int64) any {
	if offset < 0 {
		return nil
	}
	return offset
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Handler does one command.
type Handler func(*Command) (any, error)

// Serve answers commands until close or the end of input. code is Kafka's number for an error, or nil.
func Serve(handlers map[string]Handler, code func(error) *int16) {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		command := new(Command)
		must(json.Unmarshal(line, command))
		answer, err := run(handlers, command)
		if err != nil {
			must(out.Encode(map[string]any{"error": err.Error(), "code": code(err)}))
		} else {
			must(out.Encode(map[string]any{"ok": answer}))
		}
		if command.Do == "close" {
			return
		}
	}
}

func run(handlers map[string]Handler, command *Command) (answer any, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v\n%s", problem, debug.Stack())
		}
	}()
	handler, there := handlers[command.Do]
	if !there {
		return nil, fmt.Errorf("unknown command %s", command.Do)
	}
	return handler(command)
}

package mailer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// barnabas start --nodes 1 --faults 127.0.0.1:9900
//
//	go test .                         it fails: three orders get no mail
//	CONSUMER=mended go test .         it passes
//
// FAULTS names another address than http://127.0.0.1:9900.
const orders = 9

func TestEveryOrderGetsAMail(t *testing.T) {
	ask(t, "POST", "/reset", nil)
	servers := strings.Split(ask(t, "GET", "/", nil)["cluster"].(map[string]any)["bootstrap_servers"].(string), ",")
	ask(t, "POST", "/topics", map[string]any{"name": "orders"})
	order(t, servers)

	path := ""
	if os.Getenv("FAULT") != "none" {
		// The second commit of the group fails.
		fault := ask(t, "POST", "/faults", map[string]any{
			"kind": "fail", "api": "OffsetCommit", "error": "UNKNOWN_SERVER_ERROR", "group": "mailer", "nth": 2,
		})
		path = fmt.Sprintf("/faults/%v", fault["id"])
	}
	mails := map[string]bool{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := Run(ctx, servers, orders, os.Getenv("CONSUMER") == "mended", func(order string) { mails[order] = true })
	if err != nil {
		t.Fatal(err)
	}
	if path != "" && ask(t, "GET", path, nil)["hits"].(float64) != 1 {
		t.Fatal("the fault has not struck")
	}
	if len(mails) != orders {
		t.Fatalf("%d orders got %d mails", orders, len(mails))
	}
}

func order(t *testing.T, servers []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for each := range orders {
		record := &kgo.Record{Topic: "orders", Value: []byte(fmt.Sprintf("order %d", each))}
		if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func ask(t *testing.T, method, path string, body map[string]any) map[string]any {
	t.Helper()
	address := os.Getenv("FAULTS")
	if address == "" {
		address = "http://127.0.0.1:9900"
	}
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, address+path, &sent)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode >= 300 {
		t.Fatal(answer["error"])
	}
	return answer
}

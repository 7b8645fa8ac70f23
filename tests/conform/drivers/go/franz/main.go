// Driver for franz-go: `franz BOOTSTRAP`.
package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type driver struct {
	bootstrap     []string
	producer      *kgo.Client
	consumer      *kgo.Client
	session       *kgo.GroupTransactSession
	group         string
	admin         *kadm.Client
	transactional []kgo.Opt
	owned         ownership
	acquired      map[string]*kgo.Record
	throttleMs    atomic.Int64
}

func main() {
	d := &driver{bootstrap: strings.Split(os.Args[1], ",")}
	handlers := map[string]loop.Handler{"version": version, "close": d.close}
	maps.Copy(handlers, d.producing())
	maps.Copy(handlers, d.consuming())
	maps.Copy(handlers, d.sharing())
	maps.Copy(handlers, d.administering())
	loop.Serve(handlers, func(err error) *int16 {
		var known *kerr.Error
		if errors.As(err, &known) {
			return &known.Code
		}
		return nil
	})
}

func version(*loop.Command) (any, error) {
	found, _ := debug.ReadBuildInfo()
	for _, module := range found.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return "franz-go " + module.Version, nil
		}
	}
	return nil, errors.New("built without modules")
}

func (d *driver) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(append(options, secured()...), kgo.SeedBrokers(d.bootstrap...))...)
}

func (d *driver) close(*loop.Command) (any, error) {
	switch {
	case d.session != nil:
		d.session.Close()
	case d.consumer != nil:
		d.consumer.LeaveGroup()
		d.consumer.Close()
	}
	if d.producer != nil {
		d.producer.Close()
	}
	return true, nil
}

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 4*time.Minute)
}

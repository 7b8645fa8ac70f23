package main

import (
	"context"

	"barnabas.test/drivers/loop"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// secured are the options of TLS and the login; none where the listener is a plain one.
func secured() []kgo.Opt {
	way := loop.Secured()
	if way == nil {
		return nil
	}
	found := []kgo.Opt{kgo.DialTLSConfig(way.TLS())}
	user := scram.Auth{User: way.User, Pass: way.Password, IsToken: way.IsToken}
	switch way.Mechanism {
	case "PLAIN":
		return append(found, kgo.SASL(plain.Auth{User: way.User, Pass: way.Password}.AsMechanism()))
	case "OAUTHBEARER":
		return append(found, kgo.SASL(oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := way.Token()
			return oauth.Auth{Token: token}, err
		})))
	case "SCRAM-SHA-256":
		return append(found, kgo.SASL(user.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		return append(found, kgo.SASL(user.AsSha512Mechanism()))
	}
	return found
}

package main

import (
	"barnabas.test/drivers/loop"
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// exchange is one login by SCRAM: the library leaves it to its caller.
type exchange struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (e *exchange) Begin(user, password, authorization string) error {
	client, err := e.hash.NewClient(user, password, authorization)
	if err == nil {
		e.conversation = client.NewConversation()
	}
	return err
}

func (e *exchange) Step(challenge string) (string, error) {
	return e.conversation.Step(challenge)
}

func (e *exchange) Done() bool {
	return e.conversation.Done()
}

// tokens are those of the token server.
type tokens struct{ way *loop.Way }

func (t tokens) Token() (*sarama.AccessToken, error) {
	token, err := t.way.Token()
	return &sarama.AccessToken{Token: token}, err
}

// secure sets TLS and the login; nothing where the listener is a plain one.
func secure(found *sarama.Config) {
	way := loop.Secured()
	if way == nil {
		return
	}
	found.Net.TLS.Enable = true
	found.Net.TLS.Config = way.TLS()
	if way.Mechanism == "" {
		return
	}
	hashes := map[string]scram.HashGeneratorFcn{"SCRAM-SHA-256": scram.SHA256, "SCRAM-SHA-512": scram.SHA512}
	found.Net.SASL.Enable = true
	found.Net.SASL.Mechanism = sarama.SASLMechanism(way.Mechanism)
	found.Net.SASL.User, found.Net.SASL.Password = way.User, way.Password
	if way.TokenURL != "" {
		found.Net.SASL.TokenProvider = tokens{way}
	}
	if hash, there := hashes[way.Mechanism]; there {
		found.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &exchange{hash: hash} }
	}
}

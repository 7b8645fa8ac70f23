package loop

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"strings"
)

// Way is how a driver connects, from the file that CARD_SECURITY names.
type Way struct {
	Protocol    string `json:"protocol"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	IsToken     bool   `json:"is_token"`
	TokenURL    string `json:"token_url"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// Secured is the way of this run, or nil when the listener is a plain one.
func Secured() *Way {
	name := os.Getenv("CARD_SECURITY")
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	must(err)
	way := new(Way)
	must(json.Unmarshal(data, way))
	return way
}

// TLS is the configuration of its connections.
func (w *Way) TLS() *tls.Config {
	authority, err := os.ReadFile(w.CA)
	must(err)
	found := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	found.RootCAs.AppendCertsFromPEM(authority)
	if w.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(w.Certificate, w.Key)
		must(err)
		found.Certificates = []tls.Certificate{pair}
	}
	return found
}

// Token asks the token server for one.
func (w *Way) Token() (string, error) {
	request, err := http.NewRequest("POST", w.TokenURL, strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(w.User, w.Password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	found := struct {
		Token string `json:"access_token"`
	}{}
	err = json.NewDecoder(answer.Body).Decode(&found)
	return found.Token, err
}

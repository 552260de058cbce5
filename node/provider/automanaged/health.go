package automanaged

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/concord-go/concord/node/internal/guard"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// With a secret, a request carries a random text and proves that its sender has the secret, and the
// answer proves the same. Recorded, either is of no use: an answer is for one text, and a request
// only gets an answer for the text that it was made for.
const (
	nonceHeader = "Concord-Nonce"
	proofHeader = "Concord-Proof"
	maxNonce    = 64

	asks    = "health request"
	answers = "health answer"
)

// path and answer match those of Proto.Actor's provider.
const path = "/_health"

type answer struct {
	ID             string   `json:"id"`
	Address        string   `json:"address"`
	AutoManagePort int      `json:"auto_manage_port"`
	Port           int      `json:"port"`
	Kinds          []string `json:"kinds"`
	ClusterName    string   `json:"cluster_name"`
}

func (a answer) equal(b answer) bool {
	return a.ID == b.ID && a.Address == b.Address && a.AutoManagePort == b.AutoManagePort &&
		a.Port == b.Port && a.ClusterName == b.ClusterName && slices.Equal(a.Kinds, b.Kinds)
}

// Limits on the fields of an answer.
const (
	maxID    = 256
	maxHost  = 255
	maxKinds = 1000
)

func (a answer) check() error {
	switch {
	case a.ID == "" || len(a.ID) > maxID:
		return fmt.Errorf("answer has an id of %d bytes, it must have from 1 to %d",
			len(a.ID), maxID)
	case a.Address == "" || len(a.Address) > maxHost:
		return fmt.Errorf("answer has an address of %d bytes, it must have from 1 to %d",
			len(a.Address), maxHost)
	case a.Port < 1 || a.Port > 65535:
		return fmt.Errorf("answer has port %d, it must be from 1 to 65535", a.Port)
	case len(a.Kinds) > maxKinds:
		return fmt.Errorf("answer has %d kinds, it may have %d", len(a.Kinds), maxKinds)
	}
	return nil
}

func (a answer) address() string { return address(a.Address, a.Port) }

func address(host string, port int) string {
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

func (a answer) member() roster.Member {
	return roster.Member{ID: a.ID, Host: a.Address, Port: a.Port, Kinds: a.Kinds}
}

// listen serves the answer about self until the server is closed.
func listen(c Config, self roster.Self, g *guard.Guard, asked *askers) (
	server *http.Server, served <-chan struct{}, err error,
) {
	host := c.Host
	if host == "" {
		host = self.Listener
	}
	at := net.JoinHostPort(host, strconv.Itoa(c.Port))
	l, err := net.Listen("tcp", at)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil, fmt.Errorf("automanaged: port %d of %q, for health requests, is taken: %w",
			c.Port, host, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("automanaged: %w", err)
	}
	identity, _ := g.TLS()
	ip := net.ParseIP(host)
	if everywhere := host == "" || ip != nil && ip.IsUnspecified(); everywhere &&
		identity == nil && !g.HasSecret() {
		self.Log.Warn("health requests are answered on all interfaces, without authentication",
			slog.String("address", at))
	}
	body, err := json.Marshal(answer{self.ID, self.Host, c.Port, self.Port, self.Kinds,
		self.Cluster})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		nonce := r.Header.Get(nonceHeader)
		if len(nonce) > maxNonce ||
			!g.Signed(r.Header.Get(proofHeader), asks, self.Cluster, nonce) {
			http.Error(w, "not a member of this cluster", http.StatusForbidden)
			return
		}
		if proof := g.Sign(answers, self.Cluster, nonce, string(body)); proof != "" {
			w.Header().Set(proofHeader, proof)
		}
		now, from := time.Now(), r.Header.Get(fromHeader)
		if r.TLS == nil || len(r.TLS.PeerCertificates) > 0 &&
			guard.Speaks(r.TLS.PeerCertificates[0], from) == nil {
			asked.sign(now, r.Header.Get(idHeader))
		}
		if asked.unlisted(now, from) {
			w.Header().Set(listsHeader, listsNot)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // a peer that disconnected asks again
	})
	server = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		MaxHeaderBytes: maxAnswer,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	if identity != nil {
		l = tls.NewListener(l, identity)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until Close
	}()
	return server, done, nil
}

package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/opened"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/clienttls"
	"github.com/concord-go/concord/internal/settings"
)

var _ leaseconfig.Opener = Opener

// options are the settings of Opener, which docs/configuration.md lists.
type options struct {
	Config `yaml:",inline"`
	// Endpoints of etcd, as "10.0.0.5:2379". Required.
	Endpoints []string `yaml:"endpoints"`
	// Username and Password are the credentials, if etcd has authentication enabled.
	Username string `yaml:"username"`
	Password string `yaml:"password"`
	// TLS of the connections. Default: none.
	TLS clienttls.Files `yaml:"tls"`
}

// Validate returns all problems at once, as coordination.ErrInvalid.
func (s options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("etcd: %w: "+format,
			append([]any{coordination.ErrInvalid}, args...)...))
	}
	if len(s.Endpoints) == 0 {
		bad("Endpoints must have one at least")
	}
	for _, e := range s.Endpoints {
		if e == "" {
			bad("Endpoints has an empty one")
		}
	}
	if (s.Username == "") != (s.Password == "") {
		bad("Username and Password belong together")
	}
	if err := s.TLS.Validate(); err != nil {
		bad("%w", err)
	}
	return errors.Join(append(errs, s.validate())...)
}

// Opener reads the settings that docs/configuration.md lists, for a Provider or a configuration
// file, and opens a store with its own client. Closing the store closes the client. Without
// Username it opens the store also while etcd is unavailable.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (leasestore.Store, error) { return opened.As(s.open()) }, nil
}

// owner is a store that owns its client.
type owner struct {
	*store
}

// Close closes the client.
func (o owner) Close() error { return o.client.Close() }

func (s options) open() (owner, error) {
	secure, err := s.TLS.Config()
	if err != nil {
		return owner{}, fmt.Errorf("etcd: %w", err)
	}
	client, err := Dial(s.client(secure))
	if err != nil {
		return owner{}, fmt.Errorf("etcd: %w", err)
	}
	made, err := newStore(client, s.Config)
	if err != nil {
		return owner{}, errors.Join(err, client.Close())
	}
	return owner{made}, nil
}

func (s options) client(secure *tls.Config) clientv3.Config {
	return clientv3.Config{
		Endpoints: s.Endpoints, Username: s.Username, Password: s.Password, TLS: secure,
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(), // the errors of store calls report the same problems
	}
}

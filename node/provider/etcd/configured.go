package etcd

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/clienttls"
	"github.com/concord-go/concord/internal/settings"
)

// options are the settings that Configured reads, which docs/configuration.md lists.
type options struct {
	Config `yaml:",inline"`
	// Endpoints are the addresses of etcd, such as "10.0.0.9:2379". Required.
	Endpoints []string `yaml:"endpoints"`
	// Username and Password authenticate the client, if etcd has authentication enabled.
	Username string `yaml:"username"`
	Password string `yaml:"password"`
	// TLS configures the connections; its files are read for each incarnation. Default: no TLS.
	TLS clienttls.Files `yaml:"tls"`
}

// Validate returns all problems at once; each matches errInvalid.
func (s options) Validate() error {
	errs := []error{s.config().validate()}
	if (s.Username == "") != (s.Password == "") {
		errs = append(errs, fmt.Errorf("%w: Username and Password belong together", errInvalid))
	}
	if err := s.TLS.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", errInvalid, err))
	}
	return errors.Join(errs...)
}

// config returns the Config of the settings without TLS, whose files are read for each incarnation.
func (s options) config() Config {
	c := s.Config
	c.Client.Endpoints, c.Client.Username, c.Client.Password = s.Endpoints, s.Username, s.Password
	return c
}

// Configured decodes and checks the settings that docs/configuration.md lists, for a configuration
// file (package config), and returns New of their Config.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (cluster.ClusterProvider, error) {
		secure, err := s.TLS.Config()
		if err != nil {
			return nil, fmt.Errorf("etcd: %w", err)
		}
		c := s.config()
		c.Client.TLS = secure
		return New(c)()
	}, nil
}

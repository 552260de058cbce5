package zookeeper

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
	// TLS configures the connections; its files are read for each incarnation. Default: no TLS.
	TLS clienttls.Files `yaml:"tls"`
}

// Validate returns all problems at once; each matches errInvalid.
func (s options) Validate() error {
	errs := []error{s.validate()}
	if err := s.TLS.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", errInvalid, err))
	}
	return errors.Join(errs...)
}

// Configured decodes and checks the settings that docs/configuration.md lists, for a configuration
// file (package config), and returns New of their Config.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (cluster.ClusterProvider, error) {
		dial, err := s.TLS.Dialer()
		if err != nil {
			return nil, fmt.Errorf("zookeeper: %w", err)
		}
		c := s.Config
		if dial != nil {
			c.Dial = dial
		}
		return New(c)()
	}, nil
}

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	// OpenTimeout bounds Open, from 100ms to 1m. Default 10s.
	OpenTimeout time.Duration `yaml:"open-timeout"`
	// TLS of the connections. Default: none.
	TLS clienttls.Files `yaml:"tls"`
}

// Validate returns all problems at once, as coordination.ErrInvalid.
func (s options) Validate() error {
	s = s.withDefaults()
	errs := []error{s.validate()}
	if s.OpenTimeout < 100*time.Millisecond || s.OpenTimeout > time.Minute {
		errs = append(errs, fmt.Errorf("zookeeper: %w: OpenTimeout (%v) must be from 100ms to 1m",
			coordination.ErrInvalid, s.OpenTimeout))
	}
	if err := s.TLS.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("zookeeper: %w: %w", coordination.ErrInvalid, err))
	}
	return errors.Join(errs...)
}

func (s options) withDefaults() options {
	if s.OpenTimeout == 0 {
		s.OpenTimeout = 10 * time.Second
	}
	return s
}

// Opener reads the settings that docs/configuration.md lists, for a Provider or a configuration
// file, and opens the store with Open.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (leasestore.Store, error) { return opened.As(s.withDefaults().open()) }, nil
}

func (s options) open() (Store, error) {
	dial, err := s.TLS.Dialer()
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	c := s.Config
	if dial != nil {
		c.Dial = dial
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.OpenTimeout)
	defer cancel()
	return Open(ctx, c)
}

package file

import (
	"fmt"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/opened"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/settings"
)

var _ leaseconfig.Opener = Opener

// options are the settings of Opener, which docs/configuration.md lists.
type options struct {
	// Directory holds the leases; see Open. Required.
	Directory string `yaml:"directory"`
}

// Validate checks the settings. The error is coordination.ErrInvalid.
func (s options) Validate() error {
	if s.Directory == "" {
		return fmt.Errorf("file: %w: Directory must be set", coordination.ErrInvalid)
	}
	return nil
}

// Opener reads the settings that docs/configuration.md lists, for a Provider or a configuration
// file, and opens the store with Open.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (leasestore.Store, error) { return opened.As(Open(s.Directory)) }, nil
}

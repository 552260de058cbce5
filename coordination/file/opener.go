package file

import (
	"fmt"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/settings"
)

var _ coordination.Opener = Opener

// Settings are what Opener reads.
type Settings struct {
	// Directory of the leases; see Open. Required.
	Directory string `yaml:"directory"`
}

// Validate returns what is wrong, as coordination.ErrInvalid.
func (s Settings) Validate() error {
	if s.Directory == "" {
		return fmt.Errorf("file: %w: Directory must be set", coordination.ErrInvalid)
	}
	return nil
}

// Opener is for a Provider, and for a configuration file: Settings, and Open.
func Opener(decode func(into any) error) (func() (coordination.Store, error), error) {
	s, err := settings.Read[Settings](decode)
	if err != nil {
		return nil, err
	}
	return func() (coordination.Store, error) { return coordination.Opened(Open(s.Directory)) }, nil
}

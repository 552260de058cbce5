package bbolt

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/settings"
)

// Settings are what Opener reads.
type Settings struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
}

// Validate reports what is wrong, after filling in the defaults.
func (s Settings) Validate() error {
	err := s.Config.Validate()
	if s.Directory == "" {
		err = errors.Join(fmt.Errorf("%w: Directory must be set", store.ErrInvalid), err)
	}
	return err
}

// Opener is for a configuration file (package config): Settings, checked, and Open.
func Opener(decode func(into any) error) (func() (store.Store, error), error) {
	s, err := settings.Read[Settings](decode)
	if err != nil {
		return nil, err
	}
	return func() (store.Store, error) {
		opened, err := Open(s.Directory, s.Config)
		if err != nil {
			return nil, err
		}
		return opened, nil
	}, nil
}

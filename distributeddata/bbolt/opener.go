package bbolt

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/settings"
)

// Settings is the configuration that Opener decodes.
type Settings struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
}

// Validate reports all problems, after filling in the defaults.
func (s Settings) Validate() error {
	err := s.Config.Validate()
	if s.Directory == "" {
		err = errors.Join(fmt.Errorf("%w: Directory must be set", store.ErrInvalid), err)
	}
	return err
}

// Opener is for a configuration file (package config). It decodes and validates Settings, and
// returns a function that opens the store.
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

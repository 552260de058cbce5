package bbolt

import (
	"fmt"

	"github.com/concord-go/concord/distributeddata/store"
)

// Settings are what Opener reads.
type Settings struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
}

// Opener is for a configuration file (package config): Settings, checked, and Open.
func Opener(decode func(into any) error) (func() (store.Store, error), error) {
	var s Settings
	if err := decode(&s); err != nil {
		return nil, err
	}
	if s.Directory == "" {
		return nil, fmt.Errorf("%w: Directory must be set", store.ErrInvalid)
	}
	if err := s.Validate(); err != nil {
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

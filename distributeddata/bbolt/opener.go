package bbolt

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/settings"
)

// section is the configuration that Opener decodes, which docs/configuration.md lists.
type section struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
}

// Validate reports all problems, after filling in the defaults.
func (s section) Validate() error {
	err := s.validate()
	if s.Directory == "" {
		err = errors.Join(fmt.Errorf("%w: Directory must be set", store.ErrInvalid), err)
	}
	return err
}

// Opener is for a configuration file (package config). It decodes and validates the settings that
// docs/configuration.md lists, and returns a function that opens the store.
func Opener(decode func(into any) error) (func() (store.Store, error), error) {
	s, err := settings.Read[section](decode)
	if err != nil {
		return nil, err
	}
	return func() (store.Store, error) { return Open(s.Directory, s.Config) }, nil
}

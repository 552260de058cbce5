package badger

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/settings"
)

// section is the configuration that Opener decodes, which docs/configuration.md lists.
type section struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
	// KeyFile, if set, names a file that contains Config.Key: 16, 24 or 32 bytes in base64, on one
	// line. It is read when the store is opened.
	KeyFile string `yaml:"key-file"`
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
	return func() (store.Store, error) { return s.open() }, nil
}

func (s section) open() (store.Store, error) {
	c := s.Config
	if s.KeyFile != "" {
		text, err := os.ReadFile(s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("badger: KeyFile: %w", err)
		}
		if c.Key, err = base64.StdEncoding.DecodeString(
			strings.TrimSpace(string(text))); err != nil || len(c.Key) == 0 {
			return nil, fmt.Errorf("%w: KeyFile (%s) is not a key in base64", store.ErrInvalid,
				s.KeyFile)
		}
	}
	return Open(s.Directory, c)
}

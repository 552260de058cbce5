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

// Settings is the configuration that Opener decodes.
type Settings struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
	// KeyFile, if set, names a file that contains Config.Key: 16, 24 or 32 bytes in base64, on one
	// line. It is read when the store is opened.
	KeyFile string `yaml:"key-file"`
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
		opened, err := s.open()
		if err != nil {
			return nil, err
		}
		return opened, nil
	}, nil
}

func (s Settings) open() (*Store, error) {
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

package badger

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/concord-go/concord/distributeddata/store"
)

// Settings are what Opener reads.
type Settings struct {
	Config `yaml:",inline"`
	// Directory of the store; see Open. Required.
	Directory string `yaml:"directory"`
	// KeyFile, if set, has Config.Key: 16, 24 or 32 bytes in base64, in one line. It is read when the store is opened.
	KeyFile string `yaml:"key-file"`
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
		if c.Key, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err != nil || len(c.Key) == 0 {
			return nil, fmt.Errorf("%w: KeyFile (%s) is not a key in base64", store.ErrInvalid, s.KeyFile)
		}
	}
	return Open(s.Directory, c)
}

package bbolt

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"

	"github.com/concord-go/concord/distributeddata/store"
)

// Config of a store. The zero value is ready for use.
type Config struct {
	// Reserve is how many bytes stay free on the disk; 0 means 16 MiB, at least 1 MiB. Commits end with
	// store.ErrFull while less is free, and go on when a quarter more is.
	Reserve int64 `yaml:"reserve"`
	// MaxSize is how large the file may become, in bytes; 0 means 16 GiB, or 1 GiB where addresses have 32 bits and on
	// Windows; at least 64 MiB. Commits that need more end with store.ErrFull. As much address space is reserved, but
	// neither memory nor disk, but for Windows, where the file has this size from the start.
	MaxSize int64 `yaml:"max-size"`
	// Logger gets failures (Error). nil: slog.Default.
	Logger *slog.Logger `yaml:"-"`
}

const (
	leastReserve = 1 << 20
	leastSize    = 64 << 20
	mostSize     = math.MaxInt / 4
)

func (c Config) withDefaults() Config {
	if c.Reserve == 0 {
		c.Reserve = 16 << 20
	}
	if c.MaxSize == 0 {
		c.MaxSize = 1 << 30
		if math.MaxInt > math.MaxInt32 && runtime.GOOS != "windows" {
			c.MaxSize = 16 << 30
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports what is wrong, after filling in the defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Reserve < leastReserve || c.Reserve > math.MaxInt64/2 {
		errs = append(errs, fmt.Errorf("%w: Reserve (%d) must be from %d to %d", store.ErrInvalid, c.Reserve, leastReserve, int64(math.MaxInt64/2)))
	}
	if c.MaxSize < leastSize || c.MaxSize > mostSize {
		errs = append(errs, fmt.Errorf("%w: MaxSize (%d) must be from %d to %d", store.ErrInvalid, c.MaxSize, leastSize, int64(mostSize)))
	}
	return errors.Join(errs...)
}

package bbolt

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/logging"
)

// Config configures a store. The zero value is ready for use.
type Config struct {
	// Reserve is the number of bytes to keep free on the disk; 0 means 16 MiB, and the minimum is 1
	// MiB. Commits return store.ErrFull while less is free, and succeed again when a quarter more
	// is.
	Reserve int64 `yaml:"reserve"`
	// MaxSize is the maximum size of the file in bytes; 0 means 16 GiB, or 1 GiB on Windows and
	// where addresses have 32 bits; the minimum is 64 MiB. Commits that need more return
	// store.ErrFull. The store reserves that much address space, but neither memory nor disk,
	// except on Windows, where the file has this size from the start.
	MaxSize int64 `yaml:"max-size"`
	// Logger receives failures (Error). nil: slog.Default.
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
	c.Logger = logging.Bounded(c.Logger)
	return c
}

// validate reports all problems, after filling in the defaults.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Reserve < leastReserve || c.Reserve > math.MaxInt64/2 {
		errs = append(errs, fmt.Errorf("%w: Reserve (%d) must be from %d to %d", store.ErrInvalid,
			c.Reserve, leastReserve, int64(math.MaxInt64/2)))
	}
	if c.MaxSize < leastSize || c.MaxSize > mostSize {
		errs = append(errs, fmt.Errorf("%w: MaxSize (%d) must be from %d to %d", store.ErrInvalid,
			c.MaxSize, leastSize, int64(mostSize)))
	}
	return errors.Join(errs...)
}

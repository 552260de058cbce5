package badger

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/logging"
)

// Config configures a store. The zero value is ready for use.
type Config struct {
	// Reserve is the number of bytes to keep free on the disk for Badger's own writes, in addition
	// to the size of its tables; 0 means 320 MiB, which is also the minimum. After a refusal,
	// commits continue when a quarter more is free.
	Reserve int64 `yaml:"reserve"`
	// Key encrypts everything that is written, with AES, and has 16, 24 or 32 bytes; nil means no
	// encryption. It encrypts the data keys, of which Badger creates a new one every ten days. A
	// directory that was created with a key must be opened with it, and one that was created
	// without a key must be opened without one; otherwise Open returns store.ErrWrongKey.
	// Encryption takes up to 16 MiB of additional memory.
	Key []byte `yaml:"-"`
	// Logger receives failures (Error) and Badger's own messages (Warn, Debug). nil: slog.Default.
	Logger *slog.Logger `yaml:"-"`
}

const (
	memTable   = 32 << 20 // a transaction may take 15 % of it, which is more than store.MaxBatch
	valueLog   = 64 << 20
	minReserve = 8*memTable + valueLog // for flushes and compactions at the same time
	cache      = 8 << 20               // for decrypted blocks, and the same for decrypted indices
)

func (c Config) withDefaults() Config {
	if c.Reserve == 0 {
		c.Reserve = minReserve
	}
	c.Logger = logging.Bounded(c.Logger)
	return c
}

// validate reports all problems, after filling in the defaults.
func (c Config) validate() error {
	c = c.withDefaults()
	if n := len(c.Key); n != 0 && n != 16 && n != 24 && n != 32 {
		return fmt.Errorf("%w: Key has %d bytes, not 16, 24 or 32", store.ErrInvalid, n)
	}
	if c.Reserve < minReserve || c.Reserve > math.MaxInt64/2 {
		return fmt.Errorf("%w: Reserve (%d) must be from %d to %d", store.ErrInvalid, c.Reserve,
			minReserve, int64(math.MaxInt64/2))
	}
	return nil
}

func badgerOptions(dir string, key []byte, log badger.Logger) badger.Options {
	o := badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithMemTableSize(memTable).
		WithNumMemtables(2).
		WithNumLevelZeroTables(1). // overwritten or deleted rows in it still take space
		WithCompactL0OnClose(true).
		WithNumLevelZeroTablesStall(4).
		WithNumCompactors(2).
		WithValueThreshold(1 << 20). // above store.MaxValue: nothing goes to the value log
		WithValueLogFileSize(valueLog).
		WithBlockCacheSize(0).
		WithCompression(options.None).
		WithChecksumVerificationMode(options.NoVerification).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithLogger(log)
	if len(key) > 0 {
		o = o.WithEncryptionKey(bytes.Clone(key)).WithBlockCacheSize(cache).WithIndexCacheSize(
			cache)
	}
	return o
}

package badger

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/concord-go/concord/distributeddata/store"
)

// Config of a store. The zero value is ready for use.
type Config struct {
	// Reserve is how many bytes stay free on the disk for what Badger writes by itself, besides as much as
	// its tables take; 0 means 320 MiB, which is also the least. Commits go on when a quarter more is free.
	Reserve int64 `yaml:"reserve"`
	// Key encrypts what is written, by AES, with 16, 24 or 32 bytes; nil: nothing is encrypted. It encrypts the keys that
	// encrypt the data, of which Badger makes a new one every ten days. A directory is made with a key or without, and is
	// opened likewise, or else with store.ErrWrongKey. It takes up to 16 MiB of memory more.
	Key []byte `yaml:"-"`
	// Logger gets failures (Error) and what Badger says (Warn, Debug). nil: slog.Default.
	Logger *slog.Logger `yaml:"-"`
}

const (
	memTable   = 32 << 20 // a transaction may take 15 % of it, which is more than store.MaxBatch
	valueLog   = 64 << 20
	minReserve = 8*memTable + valueLog // for flushes and compactions at the same time
	cache      = 8 << 20               // of decrypted blocks, and of decrypted indices
)

func (c Config) withDefaults() Config {
	if c.Reserve == 0 {
		c.Reserve = minReserve
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports what is wrong, after filling in the defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	if n := len(c.Key); n != 0 && n != 16 && n != 24 && n != 32 {
		return fmt.Errorf("%w: Key has %d bytes, not 16, 24 or 32", store.ErrInvalid, n)
	}
	if c.Reserve < minReserve || c.Reserve > math.MaxInt64/2 {
		return fmt.Errorf("%w: Reserve (%d) must be from %d to %d", store.ErrInvalid, c.Reserve, minReserve, int64(math.MaxInt64/2))
	}
	return nil
}

func badgerOptions(dir string, key []byte, log badger.Logger) badger.Options {
	o := badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithMemTableSize(memTable).
		WithNumMemtables(2).
		WithNumLevelZeroTables(1). // rows in it that are overwritten or deleted still take room
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
		o = o.WithEncryptionKey(bytes.Clone(key)).WithBlockCacheSize(cache).WithIndexCacheSize(cache)
	}
	return o
}

package badger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/dgraph-io/ristretto/v2/z"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/distributeddata/store"
)

// verify reads what Badger's own goroutines would read, where a damaged table would end the
// process: all keys of all tables. It writes nothing. Damaged values are left to their checksums.
// It must be called under disk.Guarded.
func verify(o badger.Options) error {
	if err := verifyKeys(o.Dir); err != nil {
		return err
	}
	keys, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: o.Dir, ReadOnly: true,
		EncryptionKey: o.EncryptionKey})
	if errors.Is(err, badger.ErrEncryptionKeyMismatch) {
		return wrongKey(o.Dir)
	}
	if err != nil {
		return corrupt(badger.KeyRegistryFileName, err)
	}
	if err := verifyLogs(o.Dir, keys); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(o.Dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a new directory; otherwise the anchor reveals it
	}
	if err != nil {
		return err
	}
	manifest, _, err := badger.ReplayManifestFile(f, 0, o)
	if err = errors.Join(err, f.Close()); err != nil {
		return corrupt(badger.ManifestFilename, err)
	}
	indices, err := ristretto.NewCache(&ristretto.Config[uint64, *fb.TableIndex]{NumCounters: 64,
		MaxCost: cache, BufferItems: 64})
	if err != nil {
		return err
	}
	defer indices.Close()
	for id, t := range manifest.Tables {
		name := table.IDToFilename(id)
		key, err := keys.DataKey(t.KeyID)
		if err == nil {
			err = verifyTable(filepath.Join(o.Dir, name),
				table.Options{DataKey: key, IndexCache: indices, BlockSize: o.BlockSize})
		}
		if err != nil {
			return corrupt(name, err)
		}
	}
	return nil
}

// verifyKeys checks the lengths of the keys in the registry: Badger allocates what a damaged one
// says, up to 4 GiB, and the process may end then. The registry begins with 28 bytes that tell
// whether the key is right, and each key with its length and its checksum.
func verifyKeys(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, badger.KeyRegistryFileName))
	if err != nil {
		return ignore(err, fs.ErrNotExist) // a new directory
	}
	var head [8]byte // after a torn one Badger, too, keeps the rest of the one before
	for rest := raw[min(28, len(raw)):]; len(rest) > 0; {
		rest = rest[copy(head[:], rest):]
		n := uint64(binary.BigEndian.Uint32(head[:]))
		if n > uint64(len(raw)) {
			return corrupt(badger.KeyRegistryFileName,
				fmt.Errorf("a key of %d bytes in a file of %d", n, len(raw)))
		}
		rest = rest[min(n, uint64(len(rest))):]
	}
	return nil
}

// verifyLogs checks that the logs name existing keys: otherwise Badger would leak goroutines.
func verifyLogs(dir string, keys *badger.KeyRegistry) error {
	for _, suffix := range []string{"*.mem", "*.vlog"} {
		logs, err := filepath.Glob(filepath.Join(dir, suffix))
		if err != nil {
			return err
		}
		for _, path := range logs {
			var id [8]byte
			f, err := os.Open(filepath.Clean(path))
			if err != nil {
				return err
			}
			_, err = io.ReadFull(f, id[:])
			if err = errors.Join(ignore(err, io.EOF, io.ErrUnexpectedEOF), f.Close()); err != nil {
				return err
			}
			if _, err := keys.DataKey(binary.BigEndian.Uint64(id[:])); err != nil {
				return corrupt(filepath.Base(path), err)
			}
		}
	}
	return nil
}

// ignore returns err, or nil if it is one of some.
func ignore(err error, some ...error) error {
	if slices.ContainsFunc(some, func(e error) bool { return errors.Is(err, e) }) {
		return nil
	}
	return err
}

func corrupt(name string, err error) error {
	return fmt.Errorf("%w: %s: %w", store.ErrCorrupt, name, err)
}

func wrongKey(dir string) error {
	if raw, _ := os.ReadFile(filepath.Join(dir, badger.KeyRegistryFileName)); len(raw) >= 28 &&
		string(raw[16:28]) == "Hello Badger" {
		return fmt.Errorf("%w: it is not encrypted: open it without Config.Key", store.ErrWrongKey)
	}
	return fmt.Errorf("%w: it is encrypted, and not with this Config.Key, or its file KEYREGISTRY is damaged: "+
		"open it with the key it was made with", store.ErrWrongKey)
}

// verifyTable reads the index and all keys of a table. A panic means that the table is damaged.
func verifyTable(path string, o table.Options) (err error) {
	mapped, err := z.OpenMmapFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mapped.Close(-1)) }()
	if err := verifyIndex(mapped.Data); err != nil {
		return err
	}
	t, err := table.OpenTable(mapped, o)
	if err != nil {
		return err
	}
	it := t.NewIterator(table.NOCACHE)
	defer func() { _ = it.Close() }() // and never t.DecrRef, which deletes the file
	var last []byte
	for it.Rewind(); it.Valid(); it.Next() {
		if last != nil && y.CompareKeys(last, it.Key()) >= 0 {
			return errors.New("keys are not in order")
		}
		last = append(last[:0], it.Key()...)
	}
	return nil
}

// verifyIndex checks the end of a table: the index, its length (4), its checksum, and the length of
// the checksum (4). Badger would end the process if a length pointed outside the file.
func verifyIndex(raw []byte) error {
	before := func(n int) (end []byte, ok bool) {
		if n < 0 || n > len(raw) {
			return nil, false
		}
		end, raw = raw[len(raw)-n:], raw[:len(raw)-n]
		return end, true
	}
	block := func() ([]byte, bool) {
		n, ok := before(4)
		if !ok {
			return nil, false
		}
		return before(int(y.BytesToU32(n)))
	}
	sum, ok := block()
	if !ok {
		return errors.New("the end of the table is damaged")
	}
	index, ok := block()
	if !ok {
		return errors.New("the end of the table is damaged")
	}
	var want pb.Checksum
	if err := proto.Unmarshal(sum, &want); err != nil {
		return fmt.Errorf("checksum of the index: %w", err)
	}
	return y.VerifyChecksum(index, &want)
}

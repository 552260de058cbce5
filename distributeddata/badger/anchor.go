package badger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"
)

// anchor is a file with the number of a commit that was acknowledged. It has two slots, written in turn, so
// that one is whole at any time.
type anchor struct {
	file    *os.File
	next    int64         // slot to write
	age     time.Duration // how old it may get
	raised  time.Time
	number  uint64 // that it holds
	damaged bool   // neither slot was whole
}

const (
	anchorName = "ANCHOR"
	slot       = 8 + crc32.Size
)

// openAnchor opens the anchor, and makes it if there is none. It returns the number it holds.
func openAnchor(dir string) (*anchor, uint64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(anchorName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, 2*slot))
	if err == nil && len(raw) == 0 {
		err = syncDir(dir) // it is new
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	a, reached := &anchor{file: f, age: time.Second, damaged: len(raw) > 0}, uint64(0)
	for i := range int64(2) {
		if n, ok := readSlot(raw, i); ok {
			a.damaged = false
			if n >= reached {
				reached, a.next = n, 1-i
			}
		}
	}
	a.number = reached
	return a, reached, nil
}

func readSlot(raw []byte, i int64) (uint64, bool) {
	if int64(len(raw)) < (i+1)*slot {
		return 0, false
	}
	raw = raw[i*slot : (i+1)*slot]
	return binary.LittleEndian.Uint64(raw), crc32.Checksum(raw[:8], castagnoli) == binary.LittleEndian.Uint32(raw[8:])
}

// raise writes the number, if it is another one and the last is older than age.
func (a *anchor) raise(number uint64, now time.Time) error {
	if now.Sub(a.raised) < a.age || number == a.number {
		return nil
	}
	a.raised, a.number = now, number
	raw := binary.LittleEndian.AppendUint64(nil, number)
	raw = binary.LittleEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	if _, err := a.file.WriteAt(raw, a.next*slot); err != nil {
		return err
	}
	a.next = 1 - a.next
	return a.file.Sync()
}

// close writes the last number, if the commits up to it can be trusted.
func (a *anchor) close(number uint64, trusted bool) error {
	var err error
	if trusted {
		a.raised = time.Time{}
		err = a.raise(number, time.Now())
	}
	return errors.Join(err, a.file.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// AnchorName is the name of the anchor in its directory.
const AnchorName = "ANCHOR"

const (
	format     = 1
	headerSize = 64
	slotSize   = 8 + crc32.Size
	slotSpace  = 4096 // a torn write damages at most one slot
	anchorSize = 3 * slotSpace
)

// anchor is a file that identifies the content of a directory, and holds the number of an
// acknowledged commit. It has two slots, written in turn, so that one is intact at any time. It is
// locked while the store is open.
type anchor struct {
	file    *os.File
	next    int64         // slot to write next
	age     time.Duration // maximum age of the number
	raised  time.Time
	number  uint64 // the number that it holds
	kind    string
	damaged string // which part is damaged; empty if none
}

// openAnchor opens, checks and locks the anchor of a directory, and creates it if it does not
// exist. rows reports whether the directory has files of the engine. Damage stays until a commit,
// so that a process that ends before does not hide it.
func openAnchor(dir, kind string, rows bool) (*anchor, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(AnchorName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	a := &anchor{file: f, age: time.Second, kind: kind}
	if err = lock(f); err == nil {
		err = a.read(dir, rows)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

func (a *anchor) read(dir string, rows bool) error {
	raw, err := io.ReadAll(io.LimitReader(a.file, anchorSize))
	if err != nil {
		return err
	}
	if len(raw) == 0 && !rows {
		if err := a.create(); err != nil {
			return err
		}
		return SyncDir(dir)
	}
	if err := a.readHeader(raw); err != nil {
		return err
	}
	whole := 0
	for i := range int64(2) {
		n, ok := readSlot(raw, i)
		if !ok {
			continue
		}
		whole++
		if n >= a.number {
			a.number, a.next = n, 1-i
		}
	}
	if whole == 0 {
		a.damaged = "both of its slots"
	}
	return nil
}

// create writes an anchor with the known number.
func (a *anchor) create() error {
	raw := make([]byte, anchorSize)
	copy(raw, head(a.kind))
	for i := range int64(2) {
		copy(raw[(1+i)*slotSpace:], slotOf(a.number))
	}
	if _, err := a.file.WriteAt(raw, 0); err != nil {
		return err
	}
	a.damaged = ""
	return a.file.Sync()
}

func head(kind string) []byte {
	raw := make([]byte, headerSize-crc32.Size)
	copy(raw, fmt.Sprintf("concord rows, %s, format %d\n", kind, format))
	return binary.LittleEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
}

// readHeader returns an error if the directory belongs to something else. It records damage.
func (a *anchor) readHeader(raw []byte) error {
	text, sum := []byte(nil), uint32(0)
	if len(raw) >= headerSize {
		text, sum = raw[:headerSize-crc32.Size], binary.LittleEndian.Uint32(
			raw[headerSize-crc32.Size:])
	}
	if text == nil || crc32.Checksum(text, castagnoli) != sum {
		a.damaged = "its header"
		return nil
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	its, after, _ := bytes.Cut(line, []byte(", format "))
	number := 0
	_, _ = fmt.Sscan(string(after), &number)
	if string(its) != "concord rows, "+a.kind {
		return fmt.Errorf("%w: it says %q, and this is the store %s: open it with that store, or choose another directory",
			store.ErrForeign, line, a.kind)
	}
	if number != format {
		return fmt.Errorf("%w: it says %q, and this version reads format %d: take the version that wrote it, or choose another directory",
			store.ErrForeign, line, format)
	}
	return nil
}

func slotOf(number uint64) []byte {
	raw := binary.LittleEndian.AppendUint64(nil, number)
	return binary.LittleEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
}

func readSlot(raw []byte, i int64) (uint64, bool) {
	at := (1 + i) * slotSpace
	if int64(len(raw)) < at+slotSize {
		return 0, false
	}
	raw = raw[at : at+slotSize]
	return binary.LittleEndian.Uint64(raw),
		crc32.Checksum(raw[:8], castagnoli) == binary.LittleEndian.Uint32(raw[8:])
}

// raise writes the number, if it has changed and the last write is older than age.
func (a *anchor) raise(number uint64, now time.Time) error {
	if now.Sub(a.raised) < a.age || number == a.number {
		return nil
	}
	a.raised, a.number = now, number
	if a.damaged != "" {
		return a.create()
	}
	if _, err := a.file.WriteAt(slotOf(number), (1+a.next)*slotSpace); err != nil {
		return err
	}
	a.next = 1 - a.next
	return a.file.Sync()
}

// close writes the last number, if the commits up to it are known to be good.
func (a *anchor) close(number uint64, trusted bool) error {
	var err error
	if trusted {
		a.raised = time.Time{}
		err = a.raise(number, time.Now())
	}
	return errors.Join(err, a.file.Close())
}

// SyncDir syncs the names in a directory to disk.
func SyncDir(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

package file

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// A record file is one header line and one JSON object:
//
//	concord-lease 1 <CRC-32 of the rest, 8 hexadecimal digits>
//	{"name":"billing","epoch":"…","serial":7,…}
const (
	magic     = "concord-lease"
	format    = 2 // with a session or forever; otherwise 1, so that older programs can read it
	maxRecord = 64 << 10
)

// entry is the content of a record file; zero if there is none.
type entry struct {
	Name    string             `json:"name"`
	Epoch   string             `json:"epoch"`  // random, chosen for the file's first version
	Serial  uint64             `json:"serial"` // counts its versions, from 1
	Owner   string             `json:"owner,omitempty"`
	Nonce   string             `json:"nonce,omitempty"`
	Token   coordination.Token `json:"token"`
	Attempt uint64             `json:"attempt,omitempty"`
	TTL     time.Duration      `json:"ttl,omitempty"` // nanoseconds
	Session coordination.Token `json:"session,omitempty"`
	Forever bool               `json:"forever,omitempty"`
}

// version returns the version, which is never used twice: a file that is made again gets a new
// epoch.
func (e entry) version() leasestore.Version {
	if e.Serial == 0 {
		return ""
	}
	return leasestore.Version(e.Epoch + "." + strconv.FormatUint(e.Serial, 10))
}

func (e entry) record() leasestore.Record {
	return leasestore.Record{Owner: e.Owner, Nonce: e.Nonce, Token: e.Token,
		Attempt: e.Attempt, TTL: e.TTL,
		Session: e.Session, Forever: e.Forever}
}

// next returns the entry that replaces e.
func (e entry) next(name string, r leasestore.Record) entry {
	n := entry{Name: name, Epoch: e.Epoch, Serial: e.Serial + 1,
		Owner: r.Owner, Nonce: r.Nonce, Token: r.Token, Attempt: r.Attempt, TTL: r.TTL,
		Session: r.Session, Forever: r.Forever}
	if n.Epoch == "" {
		n.Epoch = rand.Text()
	}
	return n
}

func (e entry) encode() ([]byte, error) {
	if !utf8.ValidString(e.Name) {
		return nil, fmt.Errorf("file: name %.80q is not UTF-8", e.Name)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	data := fmt.Appendf(nil, "%s %d %08x\n%s\n", magic, e.format(), crc32.ChecksumIEEE(body), body)
	if len(data) > maxRecord {
		return nil, fmt.Errorf("file: record of %d bytes, at most %d", len(data), maxRecord)
	}
	return data, nil
}

// format returns the oldest format that can express the entry. A program that knows only older
// formats must not mistake a record for one that is no longer renewed.
func (e entry) format() uint32 {
	if e.Session != 0 || e.Forever {
		return format
	}
	return 1
}

func decode(data []byte) (entry, error) {
	header, body, ok := bytes.Cut(data, []byte("\n"))
	body, ended := bytes.CutSuffix(body, []byte("\n"))
	var version, sum uint32
	if _, err := fmt.Sscanf(string(header), magic+" %d %08x", &version, &sum); err != nil ||
		!ok || !ended {
		return entry{}, errors.New("not a lease record")
	}
	if version == 0 || version > format {
		return entry{}, fmt.Errorf("format %d, this program reads up to %d", version, format)
	}
	if sum != crc32.ChecksumIEEE(body) {
		return entry{}, errors.New("checksum differs")
	}
	var e entry
	if err := json.Unmarshal(body, &e); err != nil {
		return entry{}, err
	}
	if version != e.format() {
		return entry{}, fmt.Errorf("format %d, must be %d", version, e.format())
	}
	return e, e.check()
}

// check rejects entries that this package never writes.
func (e entry) check() error {
	switch {
	case e.Serial == 0 || e.Epoch == "":
		return errors.New("no version")
	case e.Token > 1<<63-1 || e.Session > 1<<63-1:
		return fmt.Errorf("token %d or %d out of range", e.Token, e.Session)
	case e.TTL < 0 || e.TTL == 0 && e.Nonce != "":
		return fmt.Errorf("TTL %v out of range", e.TTL)
	}
	return nil
}

// readBounded reads a regular file of at most most bytes.
func readBounded(root *os.Root, path string, most int) ([]byte, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", leasestore.ErrDamaged, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%w: %s is larger than %d bytes", leasestore.ErrDamaged, path, most)
	}
	return data, err
}

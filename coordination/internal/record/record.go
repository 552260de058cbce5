// Package record encodes lease records as text, for stores that keep bytes.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

const (
	format = 2 // with a session or forever; otherwise 1, so that older programs can read it
	most   = 64 << 10
)

type text struct {
	Format  int                `json:"format"`
	Name    string             `json:"name"` // of the lease, so that a misplaced record is detected
	Owner   string             `json:"owner,omitempty"`
	Nonce   string             `json:"nonce,omitempty"`
	Token   coordination.Token `json:"token"`
	Attempt uint64             `json:"attempt,omitempty"`
	TTL     time.Duration      `json:"ttl,omitempty"` // nanoseconds
	Session coordination.Token `json:"session,omitempty"`
	Forever bool               `json:"forever,omitempty"`
}

// formatOf returns the oldest format that can express the record.
func formatOf(r leasestore.Record) int {
	if r.Session != 0 || r.Forever {
		return format
	}
	return 1
}

// Encode encodes a record. It fails if the name is not UTF-8, or if the text is longer than 64 KiB.
func Encode(name string, r leasestore.Record) ([]byte, error) {
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("name %.80q is not UTF-8", name)
	}
	data, err := json.Marshal(text{formatOf(r), name, r.Owner, r.Nonce, r.Token, r.Attempt, r.TTL,
		r.Session, r.Forever})
	if err == nil && len(data) > most {
		err = fmt.Errorf("record of %d bytes, at most %d", len(data), most)
	}
	return data, err
}

// Decode rejects, with leasestore.ErrDamaged, data that Encode would not have written for this
// name.
func Decode(name string, data []byte) (leasestore.Record, error) {
	t, err := decode(data)
	r := leasestore.Record{Owner: t.Owner, Nonce: t.Nonce, Token: t.Token,
		Attempt: t.Attempt, TTL: t.TTL,
		Session: t.Session, Forever: t.Forever}
	switch {
	case err != nil:
	case t.Format != formatOf(r):
		err = fmt.Errorf("format %d, this program reads up to %d and expects %d here",
			t.Format, format, formatOf(r))
	case t.Name != name:
		err = fmt.Errorf("record of %q", t.Name)
	default:
		return r, nil
	}
	return leasestore.Record{}, fmt.Errorf("%w: lease %.80q: %w", leasestore.ErrDamaged, name, err)
}

func decode(data []byte) (t text, err error) {
	if len(data) > most {
		return t, fmt.Errorf("%d bytes, at most %d", len(data), most)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return t, errors.New("more than one record")
	}
	return t, nil
}

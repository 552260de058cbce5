// Package record is the text form of a lease record, for stores that keep bytes.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/concord-go/concord/coordination"
)

const (
	format = 1
	most   = 64 << 10
)

// ErrDamaged is wrapped by the error of a record that cannot be understood. Nothing can be concluded
// about the holder.
var ErrDamaged = errors.New("damaged lease record")

type text struct {
	Format  int                `json:"format"`
	Name    string             `json:"name"` // of the lease, so that a record in a wrong place is noticed
	Owner   string             `json:"owner,omitempty"`
	Nonce   string             `json:"nonce,omitempty"`
	Token   coordination.Token `json:"token"`
	Attempt uint64             `json:"attempt,omitempty"`
	TTL     time.Duration      `json:"ttl,omitempty"` // nanoseconds
}

// Encode fails if the text would be longer than 64 KiB.
func Encode(name string, r coordination.Record) ([]byte, error) {
	data, err := json.Marshal(text{format, name, r.Owner, r.Nonce, r.Token, r.Attempt, r.TTL})
	if err == nil && len(data) > most {
		err = fmt.Errorf("record of %d bytes, at most %d", len(data), most)
	}
	return data, err
}

// Decode refuses, with ErrDamaged, what Encode would not have written for this name.
func Decode(name string, data []byte) (coordination.Record, error) {
	t, err := decode(data)
	switch {
	case err != nil:
	case t.Format != format:
		err = fmt.Errorf("format %d, this program reads %d", t.Format, format)
	case t.Name != name:
		err = fmt.Errorf("record of %q", t.Name)
	default:
		return coordination.Record{Owner: t.Owner, Nonce: t.Nonce, Token: t.Token, Attempt: t.Attempt, TTL: t.TTL}, nil
	}
	return coordination.Record{}, fmt.Errorf("%w: lease %.80q: %w", ErrDamaged, name, err)
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

package distributeddata

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// pair keeps the records of two domains in the one that a Membership holds: each is a line of it, the volatile
// keys' first. It is for one call at a time.
type pair struct {
	store   Membership
	version string    // of lines; empty: they are not known
	lines   [2][]byte // what the store holds
}

var errNoVersion = errors.New("it has written, and returned no version")

// line is the place of a domain's record.
func (d *domain) line() int {
	if d.durable {
		return 1
	}
	return 0
}

// load returns the record of a domain, and the version of both.
func (p *pair) load(ctx context.Context, line int) (record []byte, version string, err error) {
	p.version = ""
	both, version, err := p.store.Load(ctx)
	if err != nil {
		return nil, version, err
	}
	if len(both) > core.MaxRecord {
		return nil, version, fmt.Errorf("the record has %d bytes, over the limit of %d", len(both), core.MaxRecord)
	}
	first, second, _ := bytes.Cut(both, []byte("\n"))
	p.version, p.lines = version, [2][]byte{bytes.Clone(first), bytes.Clone(second)}
	if len(p.lines[line]) == 0 && len(p.lines[1-line]) > 0 {
		return nil, "", nil // only the other domain has one
	}
	return p.lines[line], version, nil
}

// swap replaces the record of a domain if the version of both is still old, and keeps the other's. An empty version
// stands for no record of this domain.
func (p *pair) swap(ctx context.Context, line int, old string, next []byte) (version string, swapped bool, err error) {
	if p.version == "" || p.version != old {
		if _, version, err = p.load(ctx, line); err != nil || version != old {
			return "", false, err
		}
	}
	old = p.version // also of the record of the other domain alone
	lines := p.lines
	lines[line] = bytes.Clone(next)
	both := bytes.Clone(lines[0])
	if len(lines[1]) > 0 {
		both = append(append(both, '\n'), lines[1]...)
	}
	if len(both) > core.MaxRecord {
		return "", false, fmt.Errorf("the record would have %d bytes, over the limit of %d", len(both), core.MaxRecord)
	}
	p.version = ""
	version, swapped, err = p.store.Swap(ctx, old, both)
	switch {
	case err != nil || !swapped:
		return version, swapped, err
	case version == "":
		return "", true, errNoVersion
	}
	p.version, p.lines = version, lines
	return version, true, nil
}

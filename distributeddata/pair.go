package distributeddata

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// pair stores the records of two domains in the single record of a Membership: each is one line,
// and the first is that of the volatile keys. It is not safe for concurrent use.
type pair struct {
	store   Membership
	version string    // of lines; empty: lines are not known
	lines   [2][]byte // the content of the store
}

var errNoVersion = errors.New("the swap succeeded, but returned no version")

// line returns the index of the domain's line.
func (d *domain) line() int {
	if d.durable {
		return 1
	}
	return 0
}

// load returns the record of a domain, and the version of the whole.
func (p *pair) load(ctx context.Context, line int) (record []byte, version string, err error) {
	p.version = ""
	both, version, err := p.store.Load(ctx)
	if err != nil {
		return nil, version, err
	}
	if len(both) > quorum.MaxRecord {
		return nil, version, fmt.Errorf("the record has %d bytes, over the limit of %d", len(both),
			quorum.MaxRecord)
	}
	first, second, _ := bytes.Cut(both, []byte("\n"))
	p.version, p.lines = version, [2][]byte{bytes.Clone(first), bytes.Clone(second)}
	if len(p.lines[line]) == 0 && len(p.lines[1-line]) > 0 {
		return nil, "", nil // only the other domain has a record
	}
	return p.lines[line], version, nil
}

// swap replaces the record of a domain if the version of the whole is still old, and keeps the
// record of the other domain. An empty version stands for no record of this domain.
func (p *pair) swap(ctx context.Context, line int, old string, next []byte) (version string,
	swapped bool, err error) {
	if p.version == "" || p.version != old {
		if _, version, err = p.load(ctx, line); err != nil || version != old {
			return "", false, err
		}
	}
	old = p.version // the store's version, even if only the other domain has a record
	lines := p.lines
	lines[line] = bytes.Clone(next)
	both := bytes.Clone(lines[0])
	if len(lines[1]) > 0 {
		both = append(append(both, '\n'), lines[1]...)
	}
	if len(both) > quorum.MaxRecord {
		return "", false, fmt.Errorf("the record would have %d bytes, over the limit of %d",
			len(both), quorum.MaxRecord)
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

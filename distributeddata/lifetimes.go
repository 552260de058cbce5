package distributeddata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/expiry"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/timer"
)

// lifetimes are what Config.Expiry and Config.ClockSkew say, in milliseconds, and the clock that stamps are made by. They are
// those of one life.
type lifetimes struct {
	names    map[string]int64
	prefixes map[string]int64
	lengths  []int // of the prefixes, the longest first
	skew     int64
	clock    timer.Clock
}

func newLifetimes(cfg Config, clock timer.Clock) *lifetimes {
	t := &lifetimes{names: map[string]int64{}, prefixes: map[string]int64{}, skew: cfg.ClockSkew.Milliseconds(), clock: clock}
	for pattern, ttl := range cfg.Expiry {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if !isPrefix {
			t.names[pattern] = ttl.Milliseconds()
			continue
		}
		t.prefixes[prefix] = ttl.Milliseconds()
		t.lengths = append(t.lengths, len(prefix))
	}
	slices.Sort(t.lengths)
	t.lengths = slices.Compact(t.lengths)
	slices.Reverse(t.lengths)
	return t
}

// wrongExpiry returns what is wrong with Expiry and ClockSkew.
func (c *Config) wrongExpiry() error {
	if c.ClockSkew < time.Millisecond || c.ClockSkew > time.Hour {
		return fmt.Errorf("%w: ClockSkew is %v, must be from 1ms to 1h", ErrInvalid, c.ClockSkew)
	}
	var errs []error
	for _, pattern := range slices.Sorted(maps.Keys(c.Expiry)) {
		why := wrongEntry(pattern)
		if why == "" {
			why = wrongTTL(fmt.Sprintf("%q", pattern), c.Expiry[pattern], c.ClockSkew)
		}
		if why != "" {
			errs = append(errs, fmt.Errorf("%w: Expiry: %s", ErrInvalid, why))
		}
	}
	return errors.Join(errs...)
}

// wrongTTL says what is wrong with a time to live; empty: nothing is.
func wrongTTL(what string, ttl, skew time.Duration) string {
	switch {
	case ttl < 2*skew:
		return fmt.Sprintf("%s is %v, must be at least twice ClockSkew, %v", what, ttl, 2*skew)
	case ttl.Milliseconds() > expiry.MaxTTL:
		return fmt.Sprintf("%s is %v, must be at most a hundred years", what, ttl)
	}
	return ""
}

// now is the time of the clock.
func (t *lifetimes) now() int64 { return t.clock.Now().UnixMilli() }

// of returns the time to live of an entry that says u of itself; 0: it does not expire.
func (t *lifetimes) of(key string, u expiry.Use) int64 {
	if u.TTL > 0 {
		return u.TTL
	}
	if ttl, ok := t.names[key]; ok {
		return ttl
	}
	for _, n := range t.lengths {
		if n <= len(key) {
			if ttl, ok := t.prefixes[key[:n]]; ok {
				return ttl
			}
		}
	}
	return 0
}

// renewAt returns from when on a read of an entry is to stamp it; 0: never.
func (t *lifetimes) renewAt(e told) int64 {
	if e.ttl == 0 || e.gone() {
		return 0
	}
	return e.use.RenewAt(t.now(), e.ttl, t.skew)
}

// told returns what an entry holds, apart from what it says of its last use.
func (t *lifetimes) told(key string, s causal.Store, seen causal.Vector) told {
	e := told{store: content(s), seen: seen}
	_, e.use = lastUse(s)
	if t != nil {
		e.ttl = t.of(key, e.use)
	}
	return e
}

// content returns what an entry holds, apart from what it says of its last use.
func content(s causal.Store) causal.Store {
	if _, ok := s.LastUse(); ok {
		return s.Drop(causal.UsePath)
	}
	return s
}

// lastUse returns what an entry says of its last use, and the atoms that say it, if there are any.
func lastUse(s causal.Store) (atoms causal.Entry, u expiry.Use) {
	atoms, ok := s.LastUse()
	if ok {
		for l := range atoms.All() {
			u = u.Merge(expiry.Parse(l.Payload))
		}
	}
	return atoms, u
}

// stamper stamps the entries that an update uses.
type stamper struct {
	*lifetimes
	at  int64         // the time of the update
	ttl time.Duration // that the update gives the entry; 0: the one it has
}

func (t *lifetimes) stamper(ttl time.Duration) stamper { return stamper{t, t.now(), ttl} }

// stamped returns what an entry that held was, of which before is the content, is to hold after an update, which has made next
// of that: with a new stamp if its own is too old, and without any if nothing is left.
func (s stamper) stamped(t *core.Txn, key string, was, before, next causal.Store) causal.Store {
	if next.Empty() || buried(next) {
		return next
	}
	var atoms causal.Entry
	var old expiry.Use
	if !before.Empty() { // else they are of a former life of the entry
		atoms, old = lastUse(was)
	}
	u := old
	if ttl := s.ttl.Milliseconds(); ttl > 0 && ttl != u.TTL {
		u.TTL, u.Set = ttl, s.at
	}
	if ttl := s.of(key, u); ttl > 0 && (u != old || u.Stale(s.at, ttl, s.skew)) {
		u.At = s.at
		return next.Put(causal.UsePath, causal.Leaf{Dot: t.Dot(), Payload: string(u.Append(nil))})
	}
	if next.Same(before) {
		return was
	}
	if old != (expiry.Use{}) {
		for l := range atoms.All() {
			next = next.Insert(causal.UsePath, l)
		}
	}
	return next
}

// ExpireAfter is an option of Update: the entry expires when no member has used it for so long, whatever Config.Expiry says
// of it. It keeps that until a later Update gives it another time, or it is deleted or emptied. Of two updates at the same time
// the later one counts, by the clocks of their members. It is at least twice Config.ClockSkew, at most a hundred years, and
// counted in whole milliseconds; with any other, and in other calls than Update, the error is ErrInvalid.
func ExpireAfter(d time.Duration) Option { return expireAfter(d) }

type expireAfter time.Duration

func (d expireAfter) apply(o *options) {
	if o.ttl = time.Duration(d); d == 0 {
		o.ttl = -1 // refused
	}
}

// errNotUpdate refuses ExpireAfter in other calls.
var errNotUpdate = fmt.Errorf("%w: ExpireAfter is an option of Update alone", ErrInvalid)

// validTTL checks what ExpireAfter has given.
func (a *replica) validTTL(key string, ttl time.Duration) error {
	if ttl == 0 {
		return nil
	}
	if why := wrongTTL("ExpireAfter", ttl, a.l.cfg.ClockSkew); why != "" {
		return fmt.Errorf("key %q: %w: %s", key, ErrInvalid, why)
	}
	return nil
}

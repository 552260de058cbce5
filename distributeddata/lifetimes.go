package distributeddata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/concord-go/concord/distributeddata/internal/expiry"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/timer"
)

// lifetimes holds Config.Expiry and Config.ClockSkew in milliseconds, and the clock for stamps.
// Each incarnation has its own.
type lifetimes struct {
	names    map[string]int64
	prefixes map[string]int64
	lengths  []int // of the prefixes, in descending order
	skew     int64
	clock    timer.Clock
}

func newLifetimes(cfg Config, clock timer.Clock) *lifetimes {
	t := &lifetimes{names: map[string]int64{}, prefixes: map[string]int64{},
		skew: cfg.ClockSkew.Milliseconds(), clock: clock}
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

// wrongExpiry returns the problems of Expiry and ClockSkew.
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

// wrongTTL describes what is wrong with a time to live. It returns "" for a valid one.
func wrongTTL(what string, ttl, skew time.Duration) string {
	switch {
	case ttl < 2*skew:
		return fmt.Sprintf("%s is %v, must be at least twice ClockSkew, %v", what, ttl, 2*skew)
	case ttl.Milliseconds() > expiry.MaxTTL:
		return fmt.Sprintf("%s is %v, must be at most a hundred years", what, ttl)
	}
	return ""
}

// sum returns a digest of Config.Expiry, or 0 if it is empty.
func (t *lifetimes) sum() uint32 {
	if len(t.names)+len(t.prefixes) == 0 {
		return 0
	}
	var text []byte
	for i, times := range [...]map[string]int64{t.names, t.prefixes} {
		for _, name := range slices.Sorted(maps.Keys(times)) {
			text = fmt.Appendf(text, "%d %q %d\n", i, name, times[name])
		}
	}
	return max(uint32(xxhash.Sum64(text)), 1)
}

// now returns the time in milliseconds.
func (t *lifetimes) now() int64 { return t.clock.Now().UnixMilli() }

// of returns the time to live of an entry whose stamp is u, or 0 if it does not expire.
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

// renewAt returns the time from which a read of an entry must renew its stamp, or 0 for never.
func (t *lifetimes) renewAt(e entryView) int64 {
	if e.ttl == 0 || e.gone() {
		return 0
	}
	return e.use.RenewAt(t.now(), e.ttl, t.skew)
}

// view splits an entry into its content and its stamp.
func (t *lifetimes) view(key string, h history.Held, seen causal.Vector) entryView {
	e := entryView{store: content(h.Store), bytes: h.Bytes(), seen: seen}
	_, e.use = lastUse(h.Store)
	if t != nil {
		e.ttl = t.of(key, e.use)
	}
	return e
}

// content returns an entry without its stamp.
func content(s causal.Store) causal.Store {
	if _, ok := s.LastUse(); ok {
		return s.Drop(causal.UsePath)
	}
	return s
}

// lastUse returns the stamp of an entry and the atoms that hold it, if there are any.
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
	at  int64         // time of the update
	ttl time.Duration // set by the update; 0: unchanged
}

func (t *lifetimes) stamper(ttl time.Duration) stamper { return stamper{t, t.now(), ttl} }

// stamped returns the entry after an update. The entry was was, with the content before, which the
// update has changed to next. The result has a new stamp if the old one is due for renewal, and
// none if next is empty.
func (s stamper) stamped(t *history.Txn, key string, was, before, next causal.Store) causal.Store {
	if next.Empty() || permanentlyDeleted(next) {
		return next
	}
	var atoms causal.Entry
	var old expiry.Use
	if !before.Empty() { // otherwise the stamp belongs to an entry that was deleted
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

// ExpireAfter is an option of Update. It sets the time to live of the entry, in place of that of
// Config.Expiry: the entry expires when no member has used it for d. The setting remains until a
// later Update sets another one, or until the entry is deleted or emptied. Of two concurrent
// updates, the later one by the clocks of their members wins. d must be at least twice
// Config.ClockSkew and at most a hundred years, and is rounded down to milliseconds. Any other
// value, and the option in any call other than Update, returns ErrInvalid.
func ExpireAfter(d time.Duration) Option { return expireAfter(d) }

type expireAfter time.Duration

func (d expireAfter) apply(o *options) {
	if o.ttl = time.Duration(d); d == 0 {
		o.ttl = -1 // rejected
	}
}

// errNotUpdate rejects ExpireAfter in calls other than Update.
var errNotUpdate = fmt.Errorf("%w: ExpireAfter is an option of Update alone", ErrInvalid)

// validTTL checks the argument of ExpireAfter.
func (l *binding) validTTL(key string, ttl time.Duration) error {
	if ttl == 0 {
		return nil
	}
	if why := wrongTTL("ExpireAfter", ttl, l.cfg.ClockSkew); why != "" {
		return fmt.Errorf("key %q: %w: %s", key, ErrInvalid, why)
	}
	return nil
}

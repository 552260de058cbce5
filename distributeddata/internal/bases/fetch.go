package bases

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// MaxReplicas is the number of replicas in a vector, including all that ever ran.
const MaxReplicas = 1 << 21

// Errors of what a member sends.
var (
	ErrMalformed = errors.New("bases: malformed vector")
	errUnknown   = errors.New("bases: unknown base")
)

// UnknownError reports that a message names a base that is not known.
type UnknownError causal.Digest

func (UnknownError) Error() string { return errUnknown.Error() }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Request asks a member for a base. Known names bases that the sender knows; the sender has the
// entries of the replicas up to After.
type Request struct {
	Base  []byte
	Known [][]byte
	After causal.Replica
}

// Part is a part of a base: its entries for replicas greater than After that differ from the base
// From, or from the empty vector. One without entries that is not the last says that its sender
// does not have the base.
type Part struct {
	Base, From []byte
	After      causal.Replica
	Replicas   []causal.Replica
	Numbers    []uint64
	Last       bool
}

// fetch is the one base that is being fetched. It comes in parts, each asked for when the one
// before has come, and is accepted if its digest is the requested one.
type fetch struct {
	active   bool
	digest   causal.Digest
	member   string
	begun    bool
	from     Base         // the parts are differences from it
	got      []causal.Dot // the entries that have come
	nudge    time.Time    // when to ask again
	deadline time.Time    // for the next progress
	notUntil time.Time    // no fetch before this time, after a bad one
}

// after returns the replica of the last entry that has come.
func (f *fetch) after() causal.Replica {
	if len(f.got) == 0 {
		return 0
	}
	return f.got[len(f.got)-1].Replica
}

// queue holds the messages that wait for a base.
type queue[M any] struct {
	messages []M
	bytes    int
}

// Limits bound the messages that wait, and say how long a fetch waits: Pause before it asks again,
// and Patience until it gives up.
type Limits struct {
	Count, Bytes    int
	Pause, Patience time.Duration
}

// Await keeps a message of a member until the base that it names is known, if there is room; if
// not, it is as good as lost. kept says so, and ask that the member must now be asked for the base.
func (s *Set[M]) Await(now time.Time, m M, size int, member string, digest causal.Digest,
	l Limits) (kept, ask bool) {
	f := &s.fetch
	if !f.active && now.Before(f.notUntil) {
		return false, false
	}
	if kept = len(s.wait.messages) < l.Count && s.wait.bytes+size <= l.Bytes; kept {
		s.wait.messages, s.wait.bytes = append(s.wait.messages, m), s.wait.bytes+size
	}
	if f.active {
		return kept, false
	}
	*f = fetch{active: true, digest: digest, member: member, deadline: now.Add(l.Patience)}
	return kept, true
}

// Waiting returns the number of messages that wait.
func (s *Set[M]) Waiting() int { return len(s.wait.messages) }

// Fetching returns the member that is asked for a base, if there is one, and when to call Pursue.
func (s *Set[M]) Fetching() (member string, nudge time.Time, ok bool) {
	return s.fetch.member, s.fetch.nudge, s.fetch.active
}

// Ask returns the next request for the base that is being fetched.
func (s *Set[M]) Ask(now time.Time, l Limits) Request {
	f := &s.fetch
	f.nudge = now.Add(l.Pause)
	m := Request{Base: f.digest[:], After: f.after()}
	switch {
	case !f.begun:
		m.Known = s.names()
	case f.from.vector.Len() > 0:
		m.Known = [][]byte{f.from.Name()}
	}
	return m
}

// Pursue reports whether the member must be asked again. If it cannot be reached, or has not
// answered for too long, Pursue gives up.
func (s *Set[M]) Pursue(now time.Time, reachable bool, l Limits) (ask bool) {
	f := &s.fetch
	if !f.active || now.Before(f.nudge) {
		return false
	}
	if reachable && now.Before(f.deadline) {
		return true
	}
	s.abandon(now, l)
	return false
}

// abandon drops the base that is being fetched and what waits for it: it will be named again.
func (s *Set[M]) abandon(now time.Time, l Limits) {
	s.fetch, s.wait = fetch{notUntil: now.Add(l.Pause)}, queue[M]{}
}

// Answer returns the part that a member asks for, of at most so many entries.
func (s *Set[M]) Answer(now time.Time, m Request, entries int) (Part, error) {
	if len(m.Known) > Max {
		return Part{}, malformed("%d known bases, limit %d", len(m.Known), Max)
	}
	out := Part{Base: m.Base, After: m.After}
	v, ok := s.Find(now, m.Base)
	if !ok {
		return out, nil
	}
	var from causal.Vector
	out.From, from = s.nearest(now, v, m.Known)
	out.Last = true
	for r, n := range v.Differing(from) {
		if r <= m.After {
			continue
		}
		if len(out.Replicas) == entries {
			out.Last = false
			break
		}
		out.Replicas, out.Numbers = append(out.Replicas, r), append(out.Numbers, n[0])
	}
	return out, nil
}

// nearest returns the first of the named vectors from which v differs in fewer entries than v has.
func (s *Set[M]) nearest(now time.Time, v causal.Vector, names [][]byte) ([]byte, causal.Vector) {
	for _, name := range names {
		from, ok := s.Find(now, name)
		if !ok {
			continue
		}
		differing := 0
		for range v.Differing(from) {
			if differing++; differing >= v.Len() {
				break
			}
		}
		if differing < v.Len() {
			return name, from
		}
	}
	return nil, causal.Vector{}
}

// Take takes a part that a member has sent. ask says that the next one must be asked for; done that
// the base is complete, so that the messages that waited for it can be read.
func (s *Set[M]) Take(now time.Time, member string, m Part, seen causal.Vector,
	l Limits) (waited []M, ask, done bool, err error) {
	f := &s.fetch
	if !f.active || f.member != member || string(m.Base) != string(f.digest[:]) ||
		m.After != f.after() {
		return nil, false, false, nil
	}
	gone := len(m.Replicas) == 0 && !m.Last // one side has dropped a base since
	if !gone && !f.begun && len(m.From) > 0 {
		_, ok := s.Find(now, m.From)
		gone = !ok
	}
	if gone {
		s.abandon(now, l)
		return nil, false, false, nil
	}
	find := func(name []byte) (causal.Vector, bool) { return s.Find(now, name) }
	if err := f.take(m, find); err != nil {
		s.abandon(now, l)
		return nil, false, false, err
	}
	if !m.Last {
		f.deadline = now.Add(l.Patience)
		return nil, true, false, nil
	}
	b := Of(f.from.vector.Apply(f.got))
	if b.digest != f.digest || b.vector.Len() > MaxReplicas {
		s.abandon(now, l)
		return nil, false, false, malformed("base of %d entries does not match its digest",
			b.vector.Len())
	}
	s.learn(now, b, seen)
	waited = s.wait.messages
	s.fetch, s.wait = fetch{}, queue[M]{}
	return waited, false, true, nil
}

// take adds the entries of a part.
func (f *fetch) take(m Part, find Find) error {
	if !f.begun {
		v, ok := causal.Vector{}, len(m.From) == 0
		if !ok {
			v, ok = find(m.From)
		}
		if !ok {
			return malformed("part of a base, relative to an unknown vector")
		}
		f.begun = true
		if v.Len() > 0 {
			f.from = Of(v)
		}
	}
	if string(m.From) != string(f.from.Name()) || len(f.got)+len(m.Replicas) > MaxReplicas {
		return malformed("part of a base, after %d entries", len(f.got))
	}
	dots, err := differences(m.Replicas, m.Numbers, f.from.vector, f.after())
	f.got = append(f.got, dots...)
	return err
}

// Find returns the base with a name.
type Find func(name []byte) (causal.Vector, bool)

// Vector returns the vector made of the named base and the entries that differ from it.
func Vector[T ~uint64](name []byte, ids []T, numbers []uint64, find Find) (causal.Vector, error) {
	base := causal.Vector{}
	switch len(name) {
	case 0:
	case len(causal.Digest{}):
		v, ok := find(name)
		if !ok {
			return base, UnknownError(name)
		}
		base = v
	default:
		return base, malformed("name of a base of %d bytes", len(name))
	}
	dots, err := differences(ids, numbers, base, 0)
	if err != nil {
		return causal.Vector{}, err
	}
	v := base.Apply(dots)
	if v.Len() > MaxReplicas {
		return causal.Vector{}, malformed("vector of %d replicas, limit %d", v.Len(), MaxReplicas)
	}
	return v, nil
}

// Unknown returns the digest of the unknown base that err reports.
func Unknown(err error) (d causal.Digest, ok bool) {
	if err == nil {
		return d, false // the common case; errors.As moves its target to the heap
	}
	var u UnknownError
	ok = errors.As(err, &u)
	return causal.Digest(u), ok
}

// differences checks entries that differ from a base; their replicas come after the replica after.
func differences[T ~uint64](ids []T, numbers []uint64, base causal.Vector,
	after causal.Replica) ([]causal.Dot, error) {
	if len(ids) != len(numbers) {
		return nil, malformed("vector of %d replicas and %d numbers", len(ids), len(numbers))
	}
	dots := make([]causal.Dot, len(ids))
	for i, id := range ids {
		d := causal.Dot{Replica: causal.Replica(id), N: numbers[i]}
		if d.Replica <= after || d.N == math.MaxUint64 || d.N == base.Get(d.Replica) {
			return nil, malformed("vector at %d", i)
		}
		dots[i], after = d, d.Replica
	}
	return dots, nil
}

package crdttest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // the failures here are intended
	_ = flag.Set("rapid.shrinktime", "300ms")
	m.Run()
}

func encoded[T crdt.Value[T]](v T) []byte {
	b, err := v.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return b
}

// recorder is a test that records the failure of a broken type.
type recorder struct {
	*testing.T
	failed bool
	out    strings.Builder
}

func (r *recorder) Errorf(format string, args ...any) {
	fmt.Fprintf(&r.out, format, args...)
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.out, format, args...) }
func (r *recorder) FailNow()                        { r.Fatalf("") }
func (r *recorder) Fail()                           { r.failed = true }
func (r *recorder) Failed() bool                    { return r.failed }

// caught runs the suite on a type with a planted bug and requires that it names one of the laws.
func caught[T crdt.Value[T]](t *testing.T, typ Type[T], broken ...int) {
	t.Helper()
	r := &recorder{T: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r, typ, &running{})
	}()
	<-done
	require.True(t, r.failed, "the bug was not caught")
	require.True(t, slices.ContainsFunc(broken, func(law int) bool {
		return strings.Contains(r.out.String(), fmt.Sprintf("law %d is broken: %s\n", law,
			laws[law]))
	}), "wanted one of the laws %v in\n%s", broken, r.out.String())
	require.Contains(t, r.out.String(), "history:")
}

// planted is a grow-only set of letters stored as bits; B is its bug.
type planted[B bug] struct{ n uint8 }

type bug interface {
	merge(a, b uint8) uint8
	append(b []byte, n uint8) []byte
	decode(b []byte) (uint8, error)
}

func (p planted[B]) Merge(o planted[B]) planted[B] { return planted[B]{B.merge(*new(B), p.n, o.n)} }
func (p planted[B]) AppendBinary(b []byte) ([]byte, error) {
	return B.append(*new(B), b, p.n), nil
}

func (p planted[B]) Decode(b []byte) (planted[B], error) {
	n, err := B.decode(*new(B), b)
	return planted[B]{n}, err
}

type sound struct{}

func (sound) merge(a, b uint8) uint8          { return a | b }
func (sound) append(b []byte, n uint8) []byte { return append(b, n) }
func (sound) decode(b []byte) (uint8, error) {
	if len(b) != 1 {
		return 0, crdt.ErrMalformed
	}
	return b[0], nil
}

func bitsOf[B bug]() Type[planted[B]] {
	return Type[planted[B]]{
		Spec: Present,
		Change: func(d *Draw, _ *crdt.Writer, p *planted[B]) []Effect {
			e := d.Int("bit", 0, 2)
			p.n |= 1 << e
			return Put(fmt.Sprint(e), "")
		},
		Show: func(p planted[B]) map[string]string {
			out := map[string]string{}
			for e := range 8 {
				if p.n>>e&1 == 1 {
					out[fmt.Sprint(e)] = "in"
				}
			}
			return out
		},
	}
}

func TestRun_SoundTypePasses(t *testing.T) { Run(t, bitsOf[sound]()) }

type (
	keepsLeft    struct{ sound }
	keepsLarger  struct{ sound }
	toggles      struct{ sound }
	ignoresEmpty struct{ sound }
	losesOne     struct{ sound }
	addsSome     struct{ sound }
	panics       struct{ sound }
	losesABit    struct{ sound }
)

func (keepsLeft) merge(a, _ uint8) uint8   { return a }
func (keepsLarger) merge(a, b uint8) uint8 { return max(a, b) }
func (toggles) merge(a, b uint8) uint8     { return a ^ b }
func (losesOne) merge(a, b uint8) uint8    { return a | b&^4 }
func (ignoresEmpty) merge(a, b uint8) uint8 {
	if b == 0 {
		return 0
	}
	return a | b
}

func (addsSome) merge(a, b uint8) uint8 {
	if bits.OnesCount8(a^b) == 2 {
		return 7
	}
	return a | b
}
func (panics) decode(b []byte) (uint8, error) {
	if len(b) != 1 {
		panic("length")
	}
	return b[0], nil
}
func (losesABit) append(b []byte, n uint8) []byte { return append(b, n&3) }

func quiet[T crdt.Value[T]](typ Type[T]) Type[T] {
	typ.Spec = nil
	return typ
}

func TestRun_BrokenMergeIsCaught(t *testing.T) {
	caught(t, bitsOf[keepsLeft](), 1, 4, 5, 11, 12)
	caught(t, quiet(bitsOf[keepsLeft]()), 1, 4, 5, 11)
	caught(t, bitsOf[keepsLarger](), 12)
	caught(t, quiet(bitsOf[toggles]()), 3, 5, 11)
	caught(t, quiet(bitsOf[losesOne]()), 1, 4, 5)
	caught(t, quiet(bitsOf[ignoresEmpty]()), 1, 4, 5)
	caught(t, quiet(bitsOf[addsSome]()), 2, 4, 5, 11)
}

func TestRun_BrokenEncodingIsCaught(t *testing.T) {
	caught(t, quiet(bitsOf[panics]()), 15)
	caught(t, bitsOf[losesABit](), 11, 12, 15)
}

type starts struct{ sound }

// append ignores the slice that it is to append to.
func (starts) append(_ []byte, n uint8) []byte { return []byte{n} }

func TestRun_EncodingThatDoesNotAppendIsCaught(t *testing.T) {
	caught(t, quiet(bitsOf[starts]()), 15)
}

// A merge that does not return fails the test, and the histories end.
func TestRun_HangingMergeIsCaught(t *testing.T) {
	r := &running{}
	r.doing("step", []string{"replica 1 changed"})
	require.Empty(t, r.hung(time.Hour))
	said := r.hung(0)
	require.Contains(t, said, "a step takes longer than 0s, after this history:\n  replica 1 changed")
	require.True(t, r.over)
	failed := &recorder{T: t}
	check(failed, bitsOf[losesABit](), r) // runs nothing any more
	require.False(t, failed.failed)
}

// shared is a set that merges into the map of its operand.
type shared struct{ m map[byte]bool }

func (s shared) Merge(o shared) shared {
	if s.m == nil {
		return o
	}
	maps.Copy(s.m, o.m)
	return s
}

func (s shared) AppendBinary(b []byte) ([]byte, error) {
	return append(b, slices.Sorted(maps.Keys(s.m))...), nil
}

func (s shared) Decode(b []byte) (shared, error) {
	if !slices.IsSorted(b) || len(slices.Compact(slices.Clone(b))) < len(b) {
		return s, errors.New("order")
	}
	out := shared{m: map[byte]bool{}}
	for _, c := range b {
		out.m[c] = true
	}
	return out, nil
}

func TestRun_WrittenOperandIsCaught(t *testing.T) {
	caught(t, Type[shared]{
		Change: func(d *Draw, _ *crdt.Writer, s *shared) []Effect {
			next := maps.Clone(s.m)
			if next == nil {
				next = map[byte]bool{}
			}
			next[byte(d.Int("element", 0, 3))] = true
			*s = shared{next}
			return nil
		},
	}, 5, 17)
}

func letters(spec Spec) Type[crdt.ORSet[string]] {
	return Type[crdt.ORSet[string]]{
		Spec: spec,
		Change: func(d *Draw, w *crdt.Writer, s *crdt.ORSet[string]) []Effect {
			e := d.Letter("element")
			if d.Bool("remove") {
				s.Remove(w, e)
				return Set(e, No)
			}
			s.Add(w, e)
			return Set(e, "")
		},
		Show: func(s crdt.ORSet[string]) map[string]string {
			out := map[string]string{}
			for e := range s.All() {
				out[e] = "in"
			}
			return out
		},
	}
}

// The suite distinguishes an add-wins set from a remove-wins set, and a set with tombstones from
// one without.
func TestRun_OtherSpecificationIsCaught(t *testing.T) {
	caught(t, letters(Unanimous), 12)
	caught(t, Type[crdt.RWSet[string]]{
		MaxBytes: func(cells int) int { return 3*14 + 3*14*cells },
		Change: func(d *Draw, w *crdt.Writer, s *crdt.RWSet[string]) []Effect {
			s.Remove(w, fmt.Sprint(d.Int("element", 0, 100)))
			return nil
		},
		Show: func(crdt.RWSet[string]) map[string]string { return map[string]string{} },
	}, 16)
}

func TestRun_BrokenDeltasAreCaught(t *testing.T) {
	typ := quiet(letters(nil))
	typ.apply = func(s *crdt.ORSet[string], d crdt.Delta) error { // lost
		was := *s
		return crdt.Apply(&was, d)
	}
	caught(t, typ, 6)
	typ.apply = func(s *crdt.ORSet[string], d crdt.Delta) error { // rejected without an error
		if err := crdt.Apply(s, d); !errors.Is(err, crdt.ErrGap) {
			return err
		}
		return nil
	}
	caught(t, typ, 8)
	// This apply empties a value that already has the delta.
	typ.apply = func(s *crdt.ORSet[string], d crdt.Delta) error {
		was := *s
		if err := crdt.Apply(s, d); err != nil {
			return err
		}
		if bytes.Equal(encoded(was), encoded(*s)) {
			*s = crdt.ORSet[string]{}
		}
		return nil
	}
	caught(t, typ, 7)
}

// This test has a value that its map does not release, and one that accepts deltas of other types.
func TestRun_BrokenRemovalAndTypesAreCaught(t *testing.T) {
	typ := removed(inMap(quiet(letters(nil))))
	typ.key.remove = func(*crdt.Writer, *crdt.ORMap[string, crdt.ORSet[string]]) {}
	caught(t, typ, 13)

	typ = removed(inMap(quiet(letters(nil))))
	typ.key.there = func(m crdt.ORMap[string, crdt.ORSet[string]]) bool {
		return seen(encoded(m)).Len() == replicas
	}
	caught(t, typ, 13) // as if the value reappeared

	set := quiet(letters(nil))
	set.apply = func(s *crdt.ORSet[string], d crdt.Delta) error { // accepts deltas of other types
		if err := crdt.Apply(s, d); !errors.Is(err, crdt.ErrType) {
			return err
		}
		return nil
	}
	caught(t, set, 18)
}

package fence_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/testkit/crdttest"
)

// raw encodes texts unchanged.
type raw struct{}

func (raw) Append(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil }
func (raw) Decode(src []byte) (string, error)           { return string(src), nil }

// show is everything that a reader sees of a register.
func show[E any](r fence.Register[E]) map[string]string {
	e, ok := r.Value()
	if !ok {
		return map[string]string{}
	}
	return map[string]string{"register": fmt.Sprint(r.Token(), e)}
}

func write[E any](d *crdttest.Draw, w *crdt.Writer, r *fence.Register[E], e E) []crdttest.Effect {
	token := coordination.Token(d.Int("token", 1, 4))
	if token < r.Token() {
		return nil // Set would reject the update
	}
	r.Set(w, token, e)
	return crdttest.Put("register", strconv.Itoa(int(token)))
}

func TestRegister_Laws(t *testing.T) {
	crdttest.Run(t, crdttest.Type[fence.Register[string]]{
		Show: show[string],
		Change: func(d *crdttest.Draw, w *crdt.Writer,
			r *fence.Register[string]) []crdttest.Effect {
			return write(d, w, r, d.Letter("element"))
		},
		MaxBytes: func(int) int { return 64 },
	})
}

func TestRegister_LawsWithACodec(t *testing.T) {
	crdttest.Run(t, crdttest.Type[fence.Register[string]]{
		Empty: fence.NewRegister(raw{}),
		Show:  show[string],
		Change: func(d *crdttest.Draw, w *crdt.Writer,
			r *fence.Register[string]) []crdttest.Effect {
			return write(d, w, r, d.Letter("element"))
		},
	})
}

// tokenOnly shows only the token, for the specification: the highest token that was written and
// seen wins.
func TestRegister_HighestTokenSeenWins(t *testing.T) {
	crdttest.Run(t, crdttest.Type[fence.Register[int]]{
		Show: func(r fence.Register[int]) map[string]string {
			if r.Token() == 0 {
				return map[string]string{}
			}
			return map[string]string{"token": r.Token().String()}
		},
		Spec: crdttest.Largest,
		Change: func(d *crdttest.Draw, w *crdt.Writer, r *fence.Register[int]) []crdttest.Effect {
			token := coordination.Token(d.Int("token", 1, 9))
			if token < r.Token() {
				return nil
			}
			r.Set(w, token, d.Int("element", 0, 3))
			return crdttest.Count("token", int64(token))
		},
	})
}

func TestRegister_RefusesTheStaleWriterAndMergesItAway(t *testing.T) {
	old, next := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b fence.Register[string]
	a.Set(old.Writer(), 1, "old")
	b = b.Merge(a)
	b.Set(next.Writer(), 2, "new")

	a.Set(old.Writer(), 1, "old, again and again") // does not know of the new tenure
	a.Set(old.Writer(), 1, "old, and later")
	require.Equal(t, "old, and later (token 1)", a.String())
	a = a.Merge(b)
	require.Equal(t, "new (token 2)", a.String())

	w := old.Writer()
	a.Set(w, 1, "old, once more")
	stale, ok := errors.AsType[*fence.StaleError](w.Err())
	require.True(t, ok, "%v", w.Err())
	require.Equal(t, fence.StaleError{Token: 1, Highest: 2}, *stale)
	require.EqualError(t, w.Err(), "fence: stale token 1, 2 has been seen")
	require.Equal(t, "new (token 2)", a.String(), "nothing was written")
	a.Set(w, 3, "after an error")
	require.Equal(t, "new (token 2)", a.String(), "a failed writer writes nothing")
}

func TestRegister_LaterWriteOfATenureWins(t *testing.T) {
	replica := crdt.NewReplica(1)
	var r fence.Register[int]
	for _, n := range []int{9, 3, 5, 1} {
		before := r
		r.Set(replica.Writer(), 7, n)
		require.Equal(t, fmt.Sprintf("%d (token 7)", n), before.Merge(r).String())
		require.Equal(t, fmt.Sprintf("%d (token 7)", n), r.Merge(before).String())
	}
	out, err := r.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, "1", string(out))
}

func TestRegister_RefusesWhatCannotBeWritten(t *testing.T) {
	replica := crdt.NewReplica(1)
	for _, token := range []coordination.Token{0, 1 << 63} {
		var r fence.Register[string]
		w := replica.Writer()
		r.Set(w, token, "x")
		require.ErrorIs(t, w.Err(), fence.ErrInvalid)
		require.Equal(t, "empty", r.String())
	}
	var r fence.Register[func()]
	w := replica.Writer()
	r.Set(w, 1, func() {})
	require.ErrorIs(t, w.Err(), crdt.ErrElement)
	require.Zero(t, r.Token())

	last := []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x07\xff\xff\xff\xff\xff\xff\xff\xff1")
	full, err := fence.Register[int]{}.Decode(last)
	require.NoError(t, err)
	w = replica.Writer()
	full.Set(w, 7, 2)
	require.ErrorIs(t, w.Err(), crdt.ErrTooLarge)
	full.Set(replica.Writer(), 8, 2)
	require.Equal(t, "2 (token 8)", full.String())
}

// Encodings must stay readable forever.
func TestRegister_Encoding(t *testing.T) {
	var r fence.Register[string]
	r.Set(crdt.NewReplica(1).Writer(), 258, "x")
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	require.Equal(t, "\x01\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x01\"x\"",
		string(b))
}

func FuzzRegister_Decode(f *testing.F) {
	f.Add([]byte{1})
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x01\"x\""))
	f.Add([]byte("\x02"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var empty fence.Register[string]
		r, err := empty.Decode(src)
		if err != nil {
			require.ErrorIs(t, err, crdt.ErrMalformed)
			require.Equal(t, "empty", r.String())
			return
		}
		again, err := r.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, src, again)
		require.Equal(t, r, r.Merge(empty))
	})
}

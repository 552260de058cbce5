package distributeddata_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// A key that remembers its last value shows every change, returns values that belong to the reader,
// and allocates nothing as long as nothing changes.
func TestGet_RememberedValue(t *testing.T) {
	_, dd, stop := startMember()
	defer stop()
	ctx := context.Background()
	key := distributeddata.NewKey("basket", items{})
	add := func(e string) {
		_, err := key.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
			v.Add(w, e)
			return nil
		}, local)
		require.NoError(t, err)
	}
	read := func() items {
		v, err := key.Get(ctx, dd)
		require.NoError(t, err)
		return v
	}
	add("milk")
	mine := read()
	mine.Add(crdt.NewReplica(7).Writer(), "mine")
	require.False(t, read().Contains("mine"), "a reader's change shows to another")
	add("bread")
	require.True(t, read().Contains("bread"))
	require.False(t, mine.Contains("bread"))

	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = key.Get(ctx, dd) }))

	err := key.Delete(ctx, dd, local)
	require.NoError(t, err)
	_, err = key.Get(ctx, dd)
	require.ErrorIs(t, err, distributeddata.ErrNotFound)
}

// Keys with one name remember separately: each has its own codecs, and may have another type.
func TestGet_KeysOfOneNameRememberApart(t *testing.T) {
	_, dd, stop := startMember()
	defer stop()
	ctx := context.Background()
	set, count := distributeddata.NewKey("it", items{}), distributeddata.NewKey("it",
		crdt.PNCounter{})
	_, err := set.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
		v.Add(w, "milk")
		return nil
	}, local)
	require.NoError(t, err)
	for range 2 {
		_, err = set.Get(ctx, dd)
		require.NoError(t, err)
		_, err = count.Get(ctx, dd)
		require.ErrorIs(t, err, distributeddata.ErrType)
	}
}

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

var dollars = fence.Table{Placeholder: fence.Dollar}

// admit runs a transaction with the fence and one effect.
func admit(ctx context.Context, db *sql.DB, table fence.Table, resource string,
	token coordination.Token, effect func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := table.Admit(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := effect(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func none(*sql.Tx) error { return nil }

func openFake(t *testing.T) (*database, *sql.DB) {
	d := &database{rows: map[string]int64{}}
	db := d.open()
	t.Cleanup(func() { _ = db.Close() })
	return d, db
}

func TestTable_RefusesLowerTokens(t *testing.T) {
	d, db := openFake(t)
	ctx := t.Context()
	require.NoError(t, admit(ctx, db, dollars, "ledger", 5, none), "the first")
	require.NoError(t, admit(ctx, db, dollars, "ledger", 5, none), "the same tenure")
	require.NoError(t, admit(ctx, db, dollars, "ledger", 9, none))
	require.NoError(t, admit(ctx, db, dollars, "other", 1, none))

	err := admit(ctx, db, dollars, "ledger", 5, func(*sql.Tx) error {
		t.Error("a stale effect ran")
		return nil
	})
	stale, ok := errors.AsType[*fence.StaleError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fence.StaleError{Resource: "ledger", Token: 5, Highest: 9}, *stale)
	require.Equal(t, map[string]int64{"ledger": 9, "other": 1}, d.rows)
}

func TestTable_RollbackTakesTheTokenBack(t *testing.T) {
	d, db := openFake(t)
	require.NoError(t, admit(t.Context(), db, dollars, "ledger", 5, none))
	broken := errors.New("no money")
	require.ErrorIs(t, admit(t.Context(), db, dollars, "ledger", 9, func(*sql.Tx) error {
		return broken
	}), broken)
	require.Equal(t, map[string]int64{"ledger": 5}, d.rows)
}

// A snapshot that is older than the rows that the UPDATE compared must never admit.
func TestTable_OldSnapshotIsNoReasonToAdmit(t *testing.T) {
	d, db := openFake(t)
	require.NoError(t, admit(t.Context(), db, dollars, "ledger", 9, none))
	for old, want := range map[int64]error{4: fence.ErrContended, 5: fence.ErrContended,
		6: fence.ErrStale, -1: errDuplicate} {
		d.stale = map[string]int64{"ledger": old}
		require.ErrorIs(t, admit(t.Context(), db, dollars, "ledger", 5, none), want,
			"snapshot with %d", old)
	}
	require.Equal(t, map[string]int64{"ledger": 9}, d.rows)
}

func TestTable_RefusesWhatCannotBeKept(t *testing.T) {
	d, db := openFake(t)
	require.ErrorIs(t, admit(t.Context(), db, dollars, "ledger", 0, none), fence.ErrInvalid)
	require.ErrorIs(t, admit(t.Context(), db, dollars, "ledger", 1<<63, none), fence.ErrInvalid)
	require.ErrorContains(t, admit(t.Context(), db, dollars, strings.Repeat("x", 256), 1, none),
		"256 bytes, at most 255")
	require.ErrorContains(t, admit(t.Context(), db, fence.Table{}, "ledger", 1, none),
		"token = ?, writes", "question marks, not understood here")
	require.Zero(t, d.writes)
}

// contend lets many tenures write concurrently and returns the tokens in the order of their
// effects.
func contend(t *testing.T, once func(token coordination.Token,
	effect func()) error) (order []coordination.Token) {
	var mu sync.Mutex
	var work sync.WaitGroup
	for seed := range uint64(6) {
		work.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2))
			for n := range 40 {
				token := coordination.Token(1 + n/4 + r.IntN(4))
				err := once(token, func() {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, token)
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Errorf("token %d: %v", token, err)
				}
			}
		})
	}
	work.Wait()
	return order
}

func TestTable_EffectsNeverFallInToken(t *testing.T) {
	_, db := openFake(t)
	order := contend(t, func(token coordination.Token, effect func()) error {
		return admit(t.Context(), db, dollars, "ledger", token, func(*sql.Tx) error {
			effect()
			return nil
		})
	})
	require.NotEmpty(t, order)
	require.IsNonDecreasing(t, order)
}

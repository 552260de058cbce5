package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestPresent_AfterWaitsForTheNextIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := errors.New("closed")
		p, first, second := NewPresent[int](`cart "a"`, closed), new(int), new(int)
		require.Nil(t, p.Load())
		p.Begin(first, false)
		require.Same(t, first, p.Load())
		got, err := p.After(t.Context(), nil)
		require.NoError(t, err)
		require.Same(t, first, got)

		next := make(chan *int, 1)
		go func() {
			l, err := p.After(t.Context(), first)
			require.NoError(t, err)
			next <- l
		}()
		synctest.Wait()
		require.Empty(t, next, "the same incarnation is not another one")
		p.Drop(first, errors.New("why"))
		require.Nil(t, p.Load())
		require.EqualError(t, p.Err(), "why")
		synctest.Wait()
		require.Empty(t, next)
		p.Begin(second, false)
		require.Same(t, second, <-next)

		p.Drop(first, nil)
		require.Same(t, second, p.Load(), "an incarnation that ended before drops nothing")
		require.EqualError(t, p.Err(), "why")
	})
}

func TestPresent_AfterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, why := errors.New("closed"), errors.New("why")
		p, incarnation := NewPresent[int](`cart "a"`, closed), new(int)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		_, err := p.After(ctx, nil)
		require.ErrorIs(t, err, ErrRejoining)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, `cart "a": the message was not sent`)

		p.Begin(incarnation, false)
		failed := make(chan error, 1)
		go func() {
			_, err := p.After(t.Context(), incarnation)
			failed <- err
		}()
		synctest.Wait()
		p.Last()
		require.Equal(t, closed, <-failed)
		p.Begin(incarnation, false)
		_, err = p.After(ctx, incarnation)
		require.ErrorIs(t, err, why, "Begin takes Last back")
		p.Begin(incarnation, true)
		_, err = p.After(ctx, incarnation)
		require.Equal(t, closed, err)
	})
}

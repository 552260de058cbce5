package distributeddata

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCoreLock_OneHolderAtATime(t *testing.T) {
	l := newCoreLock()
	n, never := 0, make(chan struct{})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 500 {
				if !l.try() {
					require.True(t, l.wait(never, never, nil))
				}
				n++
				if n%7 == 0 {
					runtime.Gosched()
				}
				l.unlock()
			}
		})
	}
	all.Go(func() { // the actor
		for range 500 {
			l.lock()
			n++
			l.unlock()
			runtime.Gosched()
		}
	})
	all.Wait()
	require.Equal(t, 17*500, n)
	require.True(t, l.try(), "it is free")
}

// While the actor waits, nobody else gets the lock, not even a goroutine that waited before.
func TestCoreLock_TheActorIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCoreLock()
		require.True(t, l.try())
		never, order := make(chan struct{}), []string(nil)
		go func() {
			require.True(t, l.wait(never, never, nil))
			order = append(order, "caller")
			l.unlock()
		}()
		synctest.Wait()
		go func() {
			l.lock()
			order = append(order, "actor")
			l.unlock()
		}()
		synctest.Wait()
		require.False(t, l.try())
		l.unlock()
		synctest.Wait()
		require.Equal(t, []string{"actor", "caller"}, order)
	})
}

// A goroutine that gives up does not take the lock, and does not keep others from it.
func TestCoreLock_AWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCoreLock()
		require.True(t, l.try())
		done, never := make(chan struct{}), make(chan struct{})
		got := make(chan bool, 2)
		go func() { got <- l.wait(done, never, nil) }()
		go func() { got <- l.wait(never, never, nil) }()
		synctest.Wait()
		close(done)
		require.False(t, <-got)
		begin := time.Now()
		require.False(t, l.wait(never, never, time.After(time.Second)))
		require.Equal(t, time.Second, time.Since(begin))
		l.unlock()
		require.True(t, <-got)
	})
}

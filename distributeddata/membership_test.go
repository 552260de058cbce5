package distributeddata_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/settings"
)

// shelf stores the membership record. A test decides what goes wrong with it.
type shelf struct {
	mu      sync.Mutex
	text    []byte
	version int
	calls   int
	wrong   func() error // called first, without the lock; nil: nothing
}

func (s *shelf) begin() error {
	s.mu.Lock()
	s.calls++
	wrong := s.wrong
	s.mu.Unlock()
	if wrong != nil {
		return wrong()
	}
	return nil
}

func (s *shelf) mark() string {
	if s.version == 0 {
		return ""
	}
	return fmt.Sprint(s.version)
}

func (s *shelf) Load(context.Context) ([]byte, string, error) {
	if err := s.begin(); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.text), s.mark(), nil
}

func (s *shelf) Swap(_ context.Context, old string, next []byte) (string, bool, error) {
	if err := s.begin(); err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mark() != old {
		return "", false, nil
	}
	s.text = next
	s.version++
	return s.mark(), true, nil
}

func (s *shelf) fails(wrong func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = wrong
}

func (s *shelf) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func TestMembership_IsARecordThatARunningClusterDoesNotNeed(t *testing.T) {
	store := &shelf{}
	run(t, 3, distributeddata.Config{MinMembers: 1, Membership: store}, func(c *cluster) {
		time.Sleep(3 * time.Second)
		for i := range 3 {
			require.Equal(t, 3, c.at(i).Status().Counted)
			require.Equal(t, uint64(3), c.at(i).Status().Epoch)
		}
		before := store.asked()
		store.fails(func() error { return errors.New("down") })
		require.NoError(t, c.add(0, "x", distributeddata.Majority))
		require.Equal(t, []string{"x"}, c.elements(1, distributeddata.Majority))
		time.Sleep(time.Minute)
		require.Equal(t, before, store.asked())

		c.lose(2)
		require.Error(t, c.forget(0, c.Member(2).Address))
		require.Contains(t, c.at(0).Status().Trouble, "down")
		require.NoError(t, c.add(0, "y", distributeddata.Majority), "two of three")
		store.fails(nil)
		require.NoError(t, c.forget(0, c.Member(2).Address))
		require.Empty(t, c.at(0).Status().Trouble)
		require.Equal(t, 2, c.at(0).Status().Counted)
	})
}

// Whatever the store does, the replicator answers, and recovers when the store does.
func TestMembership_AStoreThatMisbehavesBlocksNothing(t *testing.T) {
	for name, spoil := range map[string]func() (wrong func() error, end func()){
		"panics": func() (func() error, func()) {
			return func() error { panic("planted") }, func() {}
		},
		"ends its goroutine": func() (func() error, func()) {
			return func() error { runtime.Goexit(); return nil }, func() {}
		},
		"blocks": func() (func() error, func()) {
			release := make(chan struct{})
			return func() error { <-release; return nil }, func() { close(release) }
		},
		"answers late": func() (func() error, func()) {
			return func() error { time.Sleep(7 * time.Second); return nil }, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &shelf{}
			run(t, 2, distributeddata.Config{MinMembers: 1, Membership: store}, func(c *cluster) {
				wrong, end := spoil()
				c.lose(1)
				store.fails(wrong)
				before := store.asked()
				require.Error(t, c.forget(0, c.Member(1).Address, distributeddata.Force))
				require.NoError(t, c.add(0, "x"))
				time.Sleep(time.Minute)
				if name == "blocks" {
					require.Error(t, c.forget(0, c.Member(1).Address, distributeddata.Force))
					require.LessOrEqual(t, store.asked()-before, 1, "one call at a time")
				}
				store.fails(nil)
				end()
				time.Sleep(20 * time.Second)
				err := c.forget(0, c.Member(1).Address, distributeddata.Force)
				if !errors.Is(err, distributeddata.ErrInvalid) { // it is not counted any more
					require.NoError(t, err)
				}
				require.Equal(t, 1, c.at(0).Status().Counted)
				require.NoError(t, c.add(0, "y", distributeddata.Majority))
			})
		})
	}
}

func TestConfig_WithAMembershipMinMembersIsNotNeeded(t *testing.T) {
	require.NoError(t, settings.Check(distributeddata.Config{Membership: &shelf{}}))
}

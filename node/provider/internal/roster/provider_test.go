package roster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// fake is a directory controlled by a test.
type fake struct {
	sessions chan struct{} // a session ends when it receives
	entries  chan []Member
	left     int
	closed   int

	mu      sync.Mutex
	fails   error // ends each session at once; nil: sessions succeed
	serving int
}

func newFake() *fake { return &fake{sessions: make(chan struct{}), entries: make(chan []Member)} }

func (f *fake) Where() string { return "fake directory" }

func (f *fake) Serve(ctx context.Context, self Self, report func([]Member)) error {
	f.mu.Lock()
	f.serving++
	err := f.fails
	f.mu.Unlock()
	if err != nil {
		return err
	}
	report([]Member{self.Member})
	for {
		select {
		case e := <-f.entries:
			report(append(e, self.Member))
		case <-f.sessions:
			return errors.New("session lost")
		case <-ctx.Done():
			return nil
		}
	}
}

// fail sets the error of sessions from now on, and returns how many there were.
func (f *fake) fail(err error) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
	return f.serving
}

func (f *fake) Leave(context.Context, Self) error { f.left++; return nil }

func (f *fake) Close() error { f.closed++; return nil }

// rig is a provider on a fake, and the lists it has published.
type rig struct {
	*Provider
	dir       *fake
	self      Self
	mu        sync.Mutex
	published [][]string
}

func newRig(dir *fake) *rig {
	return &rig{dir: dir, self: Self{Member: Member{ID: "self", Host: "h", Port: 1},
		Log: slog.New(slog.DiscardHandler)},
		Provider: New(Config{
			Open:         func(Self) (Directory, error) { return dir, nil },
			StartTimeout: 10 * time.Second, Grace: 5 * time.Second, Retry: time.Second,
		})}
}

func (r *rig) begin() error {
	return r.start(r.self, func(members []*cluster.Member) {
		var ids []string
		for _, m := range members {
			ids = append(ids, m.Id)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.published = append(r.published, ids)
	})
}

func (r *rig) last(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.published[len(r.published)-1]; !slices.Equal(got, want) {
		t.Errorf("published %q last, want %q", got, want)
	}
}

var other = Member{ID: "other", Host: "h", Port: 2}

func TestProvider_LastListStandsWithoutTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(newFake())
		if err := r.begin(); err != nil {
			t.Fatal(err)
		}
		r.dir.entries <- []Member{other}
		r.last(t, "other", "self")

		r.dir.fail(errors.New("refused"))
		r.dir.sessions <- struct{}{}
		time.Sleep(time.Hour)
		r.last(t, "other", "self")
		if n := r.dir.fail(nil); n < 3000 || n > 4000 {
			t.Errorf("%d tries in an hour, want one a second", n)
		}
		time.Sleep(2 * time.Second) // back, with only this member
		r.last(t, "other", "self")
		time.Sleep(5 * time.Second) // no member came back in time
		r.last(t, "self")
		_ = r.Shutdown(true)
	})
}

func TestProvider_NothingIsPublishedAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(newFake())
		if err := r.begin(); err != nil {
			t.Fatal(err)
		}
		r.dir.entries <- []Member{other}
		r.dir.sessions <- struct{}{}
		time.Sleep(2 * time.Second) // the grace has begun
		for range 2 {
			if err := r.Shutdown(true); err != nil {
				t.Error(err)
			}
		}
		n := len(r.published)
		time.Sleep(time.Minute)
		if len(r.published) != n {
			t.Errorf("published after the shutdown: %q", r.published[n:])
		}
		if r.dir.left != 1 || r.dir.closed != 1 {
			t.Errorf("left %d times, closed %d times", r.dir.left, r.dir.closed)
		}
		if err := r.begin(); !errors.Is(err, ErrUsed) {
			t.Errorf("started again: %v", err)
		}
	})
}

func TestProvider_UnlistedStartFailsAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(newFake())
		refused := errors.New("connection refused")
		r.dir.fail(refused)
		began := time.Now()
		err := r.begin()
		if !errors.Is(err, ErrListed) || !errors.Is(err, refused) || !strings.Contains(err.Error(),
			"fake directory") {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("failed after %v", took)
		}
		if r.dir.closed != 1 || len(r.published) > 0 {
			t.Errorf("closed %d times, published %q", r.dir.closed, r.published)
		}
	})
}

func TestProvider_ShutdownBeforeAndDuringTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := New(Config{}).Shutdown(true); err != nil {
			t.Error(err)
		}
		r := newRig(newFake())
		r.dir.fail(errors.New("connection refused"))
		done := make(chan error, 1)
		go func() { done <- r.begin() }()
		time.Sleep(time.Second / 2)
		if err := r.Shutdown(true); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrUsed) {
			t.Errorf("the start says %v", err)
		}
	})
}

func TestProvider_IsNoClient(t *testing.T) {
	if err := New(Config{}).StartClient(nil); !errors.Is(err, ErrClient) {
		t.Error(err)
	}
}

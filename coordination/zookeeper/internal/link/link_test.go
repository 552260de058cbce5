package link

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// address is the only address in these tests; the dialer of each test chooses the server.
const address = "127.0.0.1:2181"

// dialing returns a link whose n-th connection goes to the n-th server, and all later ones to the
// last. The test closes the link.
func dialing(t *testing.T, timeout time.Duration, to ...*server) *Link {
	t.Helper()
	dialled := 0
	l, err := Connect(Config{Servers: []string{address}, SessionTimeout: timeout,
		Dial: func(string, string, time.Duration) (net.Conn, error) { // one at a time
			s := to[min(dialled, len(to)-1)]
			dialled++
			return s.dial(), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// exists reads a node within a time.
func exists(t *testing.T, l *Link, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := Call(ctx, l, func(context.Context) (bool, error) {
		ok, _, err := l.ZK().Exists("/")
		return ok, err
	})
	return err
}

func took(from time.Time) time.Duration { return time.Since(from).Round(time.Millisecond) }

func TestGranted_IsThatOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, granted: 48 * time.Hour}
		l := dialing(t, 500*time.Hour, s)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		if got := l.Granted(); got != 48*time.Hour {
			t.Errorf("got %v, want 48h", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		s.mu.deaf = true
		l := dialing(t, 500*time.Hour, s)
		defer l.Close()
		synctest.Wait()
		if got := l.Granted(); got != 0 {
			t.Errorf("before the first session: %v", got)
		}
	})
}

// TestGranted_SurvivesAnExpiredSession: the first response of a server that refuses to resume a
// session has a timeout of 0, which is no grant.
func TestGranted_SurvivesAnExpiredSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, refuses, next := &server{t: t}, &server{t: t}, &server{t: t}
		refuses.mu.expired, next.mu.deaf = true, true
		l := dialing(t, 40*time.Second, first, refuses, next)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		first.cut()
		synctest.Wait()
		if err := exists(t, l, 3*time.Second); !errors.Is(err, ErrNotSent) {
			t.Errorf("got %v", err)
		}
		if got := l.Granted(); got != 40*time.Second || next.connections() != 1 {
			t.Errorf("got %v after %d more connections, want 40s after 1", got, next.connections())
		}
		next.set(func() { next.mu.deaf = false })
		if err := exists(t, l, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

func TestCall_WithoutSessionSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		s.mu.deaf = true
		l := dialing(t, 40*time.Second, s)
		defer l.Close()
		begun := time.Now()
		err := exists(t, l, 3*time.Second)
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := took(begun); d != 3*time.Second {
			t.Errorf("took %v, want 3s", d)
		}
	})
}

// TestConnect_LeavesAServerThatBeginsNoSession: the client itself would wait for the first response
// for 6.7 times the session timeout.
func TestConnect_LeavesAServerThatBeginsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf, good := &server{t: t}, &server{t: t}
		deaf.mu.deaf = true
		l := dialing(t, 40*time.Second, deaf, good)
		defer l.Close()
		begun := time.Now()
		if err := exists(t, l, time.Minute); err != nil {
			t.Fatal(err)
		}
		if d := took(begun); d > dialTimeout+time.Second { // and a second between rounds
			t.Errorf("took %v, want at most %v", d, dialTimeout+time.Second)
		}
	})
}

// TestCall_NudgesASilentServer: a server that has missed a wake-up continues with the next request.
func TestCall_NudgesASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		l := dialing(t, 33*time.Hour, s)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.mu.lazy = true })
		begun := time.Now()
		if err := exists(t, l, time.Minute); err != nil {
			t.Fatal(err)
		}
		if d := took(begun); d != nudgeAfter {
			t.Errorf("took %v, want %v", d, nudgeAfter)
		}
		s.set(func() { s.mu.lazy = false })
	})
}

// TestCall_NudgesAtABoundedRate: callers that wait for one silent server share its nudges, five
// every second.
func TestCall_NudgesAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		l := dialing(t, 33*time.Hour, s)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.mu.mute, s.mu.got = true, nil })
		const callers = 10
		errs := make(chan error, callers)
		for range callers {
			go func() { errs <- exists(t, l, 2*time.Second) }()
		}
		for range callers {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) ||
				errors.Is(err, ErrNotSent) {
				t.Errorf("got %v, want an unknown outcome", err)
			}
		}
		if n := s.requests("exists") - callers; n < 9 || n > 10 {
			t.Errorf("%d nudges in 2s, want one every %v", n, nudgeAfter)
		}
	})
}

// TestCall_LeavesASilentServer: a server that has been silent for a tenth of the session timeout,
// or for 2.2 s if that is less, is left, and not before, however long the caller would wait.
func TestCall_LeavesASilentServer(t *testing.T) {
	for _, c := range []struct {
		timeout, within time.Duration
		left            bool
	}{
		{40 * time.Second, 2100 * time.Millisecond, false},
		{40 * time.Second, maxSilence, true},
		{40 * time.Second, time.Hour, true},
		{400 * time.Second, maxSilence, true},
		{20 * time.Second, 1900 * time.Millisecond, false},
		{20 * time.Second, 2 * time.Second, true},
		{20 * time.Second, time.Hour, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			bad, good := &server{t: t}, &server{t: t}
			l := dialing(t, c.timeout, bad, good)
			defer l.Close()
			if err := exists(t, l, time.Second); err != nil {
				t.Fatal(err)
			}
			bad.set(func() { bad.mu.mute = true })
			begun := time.Now()
			if err := exists(t, l, c.within); err == nil || took(begun) > 3*time.Second {
				t.Fatalf("got %v after %v", err, took(begun))
			}
			time.Sleep(time.Second) // between two rounds over the servers
			synctest.Wait()
			if left := good.connections() == 1; left != c.left {
				t.Errorf("timeout %v, silent for %v: left is %v, want %v", c.timeout, c.within,
					left, c.left)
			}
		})
	}
}

// TestCall_AnsweredServerIsKept: silence counts from a request, not from the last answer, or an
// idle link would leave a good server with its first call that ends early.
func TestCall_AnsweredServerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		l := dialing(t, 33*time.Hour, s)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s.set(func() { s.mu.mute = true })
		if err := exists(t, l, 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		s.set(func() { s.mu.mute = false })
		if err := exists(t, l, time.Second); err != nil {
			t.Error(err)
		}
		if n := s.connections(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

// TestAsk_AsksTheNextServer: a read that was pending when the connection broke is repeated; a call,
// which may be a write, is not.
func TestAsk_AsksTheNextServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &server{t: t}, &server{t: t}
		l := dialing(t, 40*time.Second, bad, good)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		bad.set(func() { bad.mu.mute = true })
		read := make(chan error, 1)
		go func() {
			_, err := Ask(t.Context(), l, func(context.Context) (bool, error) {
				ok, _, err := l.ZK().Exists("/")
				return ok, err
			})
			read <- err
		}()
		called := make(chan error, 1)
		go func() { called <- exists(t, l, time.Minute) }()
		synctest.Wait()
		bad.cut()
		if err := <-called; !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("call: %v", err)
		}
		if err := <-read; err != nil {
			t.Errorf("read: %v", err)
		}
		if n := good.requests("exists"); n != 1 {
			t.Errorf("the next server got %d reads, want 1", n)
		}
	})
}

// TestCall_BoundsThoseInFlight: functions that never return hold at most maxCalls goroutines, and
// further calls send nothing.
func TestCall_BoundsThoseInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dialing(t, 40*time.Second, &server{t: t})
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		ended := make(chan error, maxCalls)
		for range maxCalls {
			go func() {
				_, err := Call(ctx, l, func(context.Context) (any, error) {
					<-release
					return nil, nil
				})
				ended <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range maxCalls {
			if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotSent) {
				t.Fatalf("got %v, want an unknown outcome", err)
			}
		}
		if err := exists(t, l, time.Second); !errors.Is(err, ErrNotSent) {
			t.Errorf("beyond the bound: %v", err)
		}
		close(release)
		if err := exists(t, l, time.Second); err != nil {
			t.Errorf("below the bound: %v", err)
		}
		l.Close()
	})
}

func TestClose_LaterCallsSendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		l := dialing(t, 40*time.Second, s)
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		l.Close()
		if d := took(begun); d != 0 || s.requests("close") != 1 {
			t.Errorf("took %v, with %d requests, want one that is answered at once", d,
				s.requests("close"))
		}
		err := exists(t, l, time.Second)
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, coordination.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAsk_ReturnsToTheOnlyServerAtOnce: the client pauses before it tries a server again, but not
// the first time.
func TestAsk_ReturnsToTheOnlyServerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		l := dialing(t, 40*time.Second, s)
		defer l.Close()
		for range 3 {
			if err := exists(t, l, time.Second); err != nil {
				t.Fatal(err)
			}
			s.cut()
			synctest.Wait()
			begun := time.Now()
			if err := exists(t, l, time.Second); err != nil || took(begun) >= time.Second/2 {
				t.Errorf("got %v after %v", err, took(begun))
			}
		}
	})
}

// TestClose_IsBounded: close waits for the silence after which a server is left, and nudges
// meanwhile; without a session it does not wait for a server.
func TestClose_IsBounded(t *testing.T) {
	for what, c := range map[string]struct {
		change    func(*server)
		want      time.Duration
		wantPings int
	}{
		"silent": {func(s *server) { s.mu.mute = true }, maxSilence, 10},
		"missed": {func(s *server) { s.mu.lazy = true }, nudgeAfter, 1},
		"gone":   {func(s *server) { s.mu.deaf = true }, time.Second, 0}, // of the client
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{t: t}
			l := dialing(t, 400*time.Second, s)
			if err := exists(t, l, time.Second); err != nil {
				t.Fatal(err)
			}
			s.set(func() { c.change(s) })
			if what == "gone" {
				s.cut()
				time.Sleep(2 * time.Second) // until the client waits for the first response
			}
			begun := time.Now()
			l.Close()
			if d := took(begun); d > c.want {
				t.Errorf("%s: close took %v, want at most %v", what, d, c.want)
			}
			if n := s.requests("ping"); n < c.wantPings {
				t.Errorf("%s: %d pings, want %d", what, n, c.wantPings)
			}
		})
	}
}

// TestSynced_ReadsWithoutWaiting: a server that answers nothing gets both requests, in order.
func TestSynced_ReadsWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		l := dialing(t, 40*time.Second, s)
		defer l.Close()
		read := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := Ask(ctx, l, func(context.Context) (bool, error) {
				return Synced(l, "/", func() (bool, error) {
					found, _, err := l.ZK().Exists("/")
					return found, err
				})
			})
			return err
		}
		if err := read(time.Second); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.mu.mute, s.mu.got = true, nil })
		if err := read(nudgeAfter / 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if want := []string{"sync", "exists"}; !slices.Equal(s.mu.got, want) {
			t.Errorf("the server got %v, want %v", s.mu.got, want)
		}
	})
}

// TestSynced_FailsWithTheSync: what was read after a failed sync may be old.
func TestSynced_FailsWithTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := &server{t: t}, &server{t: t}
		l := dialing(t, 40*time.Second, first, next)
		defer l.Close()
		if err := exists(t, l, time.Second); err != nil {
			t.Fatal(err)
		}
		first.set(func() { first.mu.mute = true })
		_, err := Call(t.Context(), l, func(context.Context) (bool, error) {
			return Synced(l, "/", func() (bool, error) {
				first.cut() // with the sync sent, and not answered
				for {
					if found, _, err := l.ZK().Exists("/"); err == nil {
						return found, nil
					}
					time.Sleep(time.Second)
				}
			})
		})
		if !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// The client itself may set its watches from an answer that it reads meanwhile, which the race
// detector reports.
func TestConnect_SetsWatchesFromBeforeTheReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		s.mu.raises = true
		l := dialing(t, 40*time.Second, s)
		defer l.Close()
		_, err := Call(t.Context(), l, func(context.Context) (bool, error) {
			ok, _, _, err := l.ZK().ExistsW("/")
			return ok, err
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var before uint64
			s.set(func() { before = s.mu.zxid })
			s.cut()
			for s.requests("watches") == 0 {
				for range 5 {
					go func() { _ = exists(t, l, time.Second) }()
				}
				time.Sleep(time.Second)
			}
			s.set(func() {
				if got := s.mu.from[0]; got != before {
					t.Errorf("from %d, want %d", got, before)
				}
				s.mu.from, s.mu.got = nil, nil
			})
		}
	})
}

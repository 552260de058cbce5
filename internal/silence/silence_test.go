package silence

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl     = 3200 * time.Millisecond
	patient = ttl * 9 / 32 // of the calls
)

// link returns a connection to a server that answers each byte after a time, or never if that is
// negative.
func link(t *testing.T, l *Links, after time.Duration) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	c := l.Add(near)
	t.Cleanup(func() { _, _ = c.Close(), far.Close() })
	go func() {
		for p := make([]byte, 1); ; {
			if _, err := far.Read(p); err != nil {
				return
			}
			if after < 0 {
				continue
			}
			time.Sleep(after)
			if _, err := far.Write(p); err != nil {
				return
			}
		}
	}()
	return c
}

// ask sends a byte, and waits for its answer.
func ask(c net.Conn) error {
	if _, err := c.Write([]byte("?")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// call is a call on a connection that it has made in the given time. It returns how long it took.
func call(t *testing.T, l *Links, makes time.Duration,
	connect func() net.Conn) (took time.Duration, err error) {
	t.Helper()
	begun := time.Now()
	// The deadline is that of a renewal, and not what ends the call.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	defer l.Watch(Patiently(ctx, ttl, time.Hour))()
	time.Sleep(makes)
	err = ask(connect())
	return time.Since(begun), err
}

func TestLinks_SilentConnectionsAreClosed(t *testing.T) {
	for _, pool := range []bool{false, true} {
		for _, makes := range []time.Duration{0, patient / 2, 3 * patient / 2} {
			synctest.Test(t, func(t *testing.T) {
				l := &Links{Pool: pool}
				idle := link(t, l, 0)
				if err := ask(idle); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				took, err := call(t, l, makes, func() net.Conn { return link(t, l, -1) })
				want := makes + patient
				if pool {
					want += patient
				}
				if err == nil || took != want {
					t.Errorf("pool %v, connected after %v: closed after %v, want %v: %v", pool,
						makes, took, want, err)
				}
				if err := ask(idle); (err != nil) != pool {
					t.Errorf("pool %v, an idle connection: %v", pool, err)
				}
			})
		}
	}
}

// A call begins while another one is silent, and both take nearly as long as a call may.
func TestLinks_CallsOnOtherConnectionsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Links{Pool: true}
		silent := make(chan error, 1)
		go func() {
			_, err := call(t, l, 0, func() net.Conn { return link(t, l, -1) })
			silent <- err
		}()
		for begin := range 4 {
			time.Sleep(patient / 4)
			slow := func() net.Conn { return link(t, l, patient-time.Millisecond) }
			if took, err := call(t, l, 0, slow); err != nil {
				t.Errorf("call %d: %v after %v", begin, err, took)
			}
		}
		if err := <-silent; err == nil {
			t.Error("an answer")
		}
	})
}

func TestLinks_ACallThatConnectsHasItsTime(t *testing.T) {
	for _, pool := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &Links{Pool: pool}
			slow := func() net.Conn { return link(t, l, patient-time.Millisecond) }
			if took, err := call(t, l, patient-time.Millisecond, slow); err != nil {
				t.Errorf("pool %v: %v after %v", pool, err, took)
			}
		})
	}
}

// A call that waits for a connection says nothing about those that are idle.
func TestLinks_ACallThatConnectsClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Links{Pool: true}
		idle := link(t, l, 0)
		if _, err := call(t, l, 5*patient, func() net.Conn { return link(t, l, 0) }); err != nil {
			t.Error(err)
		}
		if err := ask(idle); err != nil {
			t.Errorf("an idle connection: %v", err)
		}
	})
}

func TestLinks_ALateAnswerCountsInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Links{Pool: true}
		if took, err := call(t, l, 0, func() net.Conn {
			return link(t, l, 2*patient-time.Millisecond)
		}); err != nil {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A caller has given up before a connection can be called silent; the call goes on.
func TestWatch_AnImpatientCallerClosesNothing(t *testing.T) {
	for _, patiently := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &Links{}
			c := link(t, l, patient)
			ctx, cancel := context.WithTimeout(t.Context(), patient/10)
			defer cancel()
			if patiently {
				ctx = Patiently(ctx, 8*patient, 2*patient)
			}
			defer l.Watch(ctx)()
			if err := ask(c); err != nil {
				t.Errorf("patiently %v: %v", patiently, err)
			}
		})
	}
}

func TestDialContext_ConnectsWhatIsWatched(t *testing.T) {
	server, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l := &Links{}
	c, err := l.DialContext(t.Context(), "unix", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	defer l.Watch(Patiently(ctx, 100*time.Millisecond, time.Hour))()
	if err := ask(c); err == nil {
		t.Error("an answer")
	}
}

func TestWatch_WithoutLinksOrDeadlineNothingIsWatched(t *testing.T) {
	var none *Links
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	none.Watch(ctx)()
	(&Links{}).Watch(t.Context())()
}

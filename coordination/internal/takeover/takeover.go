// Package takeover measures, for the tests of stores, how a session takes over the leases of a
// killed process.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/child"
)

const (
	own      = 20
	variable = "CONCORD_TAKEOVER"
	// Leases is an environment variable with the number of leases. Default 1000.
	Leases = "CONCORD_TAKEOVER_LEASES"
)

func leases() int {
	if n, err := strconv.Atoi(os.Getenv(Leases)); err == nil {
		return n
	}
	return 1000
}

// Place returns what Run has told this process about the store, and whether it is the process that
// is to call Hold.
func Place() (place string, child bool) { return os.LookupEnv(variable) }

// Hold holds the leases until the process is killed.
func Hold(store coordination.Store) error {
	s, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		return err
	}
	acquire(context.Background(), s, leases(), "lease").Wait()
	fmt.Println(s.Status().Held)
	<-context.Background().Done()
	return nil
}

func acquire(ctx context.Context, s *coordination.Session, n int, name string) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, _ = s.Lease(fmt.Sprint(name, i)).Acquire(ctx) })
	}
	return &all
}

// Run lets a session with leases of its own wait for a thousand leases that another process holds,
// and kills that process. The session takes all over, and loses none. After settle its watches run,
// and it makes few calls, and its client few requests, if it has a proxy.
func Run(t *testing.T, place string, store coordination.Store, settle time.Duration,
	proxy *faulty.Proxy) {
	held := make(chan string, 1)
	p := child.Start(t, []string{variable + "=" + place}, func(l []byte) { held <- string(l) })
	s, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t.Context(), s, own, "own").Wait()
	select {
	case <-held:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the process does not hold all leases: %s", p.Stderr())
	}
	all := acquire(t.Context(), s, leases(), "lease")
	time.Sleep(settle)
	rest, requests := atRest(s, proxy)
	before := calls(s)
	p.Kill()
	died := time.Now()
	all.Wait()
	st := s.Status()
	took := time.Since(died).Round(10 * time.Millisecond)
	t.Logf("%d of %d leases taken over in %v by %d calls, lost %v", st.Held-own, leases(), took,
		calls(s)-before, st.Lost)
	t.Logf("%.1f calls and %.1f requests a second while waiting", rest, requests)
	if st.Held != own+leases() || len(st.Lost) > 0 {
		t.Errorf("%d leases held, lost %v", st.Held, st.Lost)
	}
	if _, watches := store.(leasestore.Watcher); watches && max(rest, requests) > 20 {
		t.Errorf("%.1f calls and %.1f requests a second while waiting", rest, requests)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, coordination.ErrUnknown) { // they are held
		t.Errorf("got %v", err)
	}
}

// atRest returns the calls and the requests a second of a session that waits.
func atRest(s *coordination.Session, proxy *faulty.Proxy) (rest, requests float64) {
	sent := func() int {
		if proxy == nil {
			return 0
		}
		return proxy.Sent()
	}
	begun, before, sentBefore := time.Now(), calls(s), sent()
	time.Sleep(10 * time.Second)
	passed := time.Since(begun).Seconds()
	return float64(calls(s)-before) / passed, float64(sent()-sentBefore) / passed
}

func calls(s *coordination.Session) (n int) {
	for _, c := range s.Status().Calls {
		n += int(c.Succeeded + c.Conflicted + c.Failed)
	}
	return n
}

package documenttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

// Interrupted checks the result of a swap whose connection breaks or whose answer never arrives:
// the outcome must be reported as unknown. open connects to a server at an address, host and port.
// It is called with to itself and with the address of a relay to it. All stores that it returns
// must share one initially empty location.
func Interrupted(t *testing.T, to string,
	open func(t *testing.T, address string) leasestore.Documents) {
	for _, c := range []struct {
		rule string
		end  func(r *relay, cancel func())
	}{
		{"after a connection that broke before the answer the outcome is unknown",
			func(r *relay, _ func()) {
				r.cut()
			}},
		{"after a context that ended before the answer the outcome is unknown",
			func(_ *relay, cancel func()) {
				cancel()
			}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := newRelay(t, to)
			i := interrupted{t, open(t, to), open(t, r.address), r}
			i.carriedOut(c.end)
		})
	}
	t.Run("a swap that never arrived is no conflict", func(t *testing.T) {
		r := newRelay(t, to)
		interrupted{t, open(t, to), open(t, r.address), r}.neverArrived()
	})
}

type interrupted struct {
	t     *testing.T
	near  leasestore.Documents // has a working connection
	far   leasestore.Documents // connects through the relay
	relay *relay
}

// carriedOut swaps while answers are withheld, and ends the call after the server has executed it.
func (i interrupted) carriedOut(end func(*relay, func())) {
	i.t.Helper()
	// These swaps also open the connection for the next one.
	first := swap(i.t, i.far, "interrupted", swap(i.t, i.far, "interrupted", "", "zero"), "one")
	ctx, cancel := context.WithTimeout(i.t.Context(), time.Minute)
	defer cancel()
	i.relay.withhold()
	failed := make(chan error, 1)
	go func() {
		_, err := i.far.SwapDocument(ctx, "interrupted", first, []byte("two"))
		failed <- err
	}()
	for text := "one"; text != "two"; text, _ = load(i.t, i.near, "interrupted") {
		if ctx.Err() != nil {
			i.t.Fatal("the swap does not arrive")
		}
	}
	end(i.relay, cancel)
	i.unknown(<-failed)
	if _, err := i.near.SwapDocument(i.t.Context(), "interrupted", first,
		[]byte("three")); !errors.Is(err, leasestore.ErrConflict) {
		i.t.Errorf("after it was carried out, a swap under the same version: error %v", err)
	}
	i.relay.cut()
	i.recovers("two")
}

// neverArrived swaps while the relay refuses connections.
func (i interrupted) neverArrived() {
	first := swap(i.t, i.far, "interrupted", "", "one")
	i.relay.close()
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*time.Second)
	defer cancel()
	_, err := i.far.SwapDocument(ctx, "interrupted", first, []byte("two"))
	if err == nil || errors.Is(err, leasestore.ErrConflict) {
		i.t.Errorf("error %v", err)
	}
	shows(i.t, i.near, "interrupted", "one", first)
	i.relay.listen()
	i.recovers("one")
}

func (i interrupted) unknown(err error) {
	i.t.Helper()
	if err == nil || errors.Is(err, leasestore.ErrConflict) ||
		errors.Is(err, leasestore.ErrRefused) {
		i.t.Errorf("a swap that was carried out, and whose answer was lost: error %v", err)
	}
}

// recovers reads through the relay until it succeeds, as a caller would.
func (i interrupted) recovers(want string) {
	i.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(i.t.Context(), 5*time.Second)
		text, v, err := i.far.LoadDocument(ctx, "interrupted")
		cancel()
		if err == nil {
			if string(text) != want {
				i.t.Fatalf("shows %.80q, want %q", text, want)
			}
			swap(i.t, i.far, "interrupted", v, "after")
			return
		}
		if i.t.Context().Err() != nil {
			i.t.Fatal(err)
		}
	}
}

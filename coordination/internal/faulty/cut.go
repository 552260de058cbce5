package faulty

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Cut closes the connections of a store at random moments of writes, also when the server has made
// the write and has not been heard. No write that was made is reported as certainly not made, by
// the server or by a client that repeats it.
func Cut(t *testing.T, open Opener) {
	t.Parallel()
	const rounds, trip = 45, 40 * time.Millisecond
	store := open(t)
	s, proxy := store(t)
	reader, _ := store(t)
	proxy.Delay(trip / 2)
	var failed, made int
	for i := range rounds {
		w := writes[i%len(writes)]
		name := fmt.Sprint("cut", i)
		reconnect(t, s)
		most := trip * 3 / 2
		if i%2 == 1 { // some writes take several trips
			most *= 4
		}
		cut := time.AfterFunc(rand.N(most), proxy.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := w.write(ctx, s, name)
		cut.Stop()
		cancel()
		written, readErr := w.written(t.Context(), reader, name)
		switch {
		case readErr != nil:
			t.Fatalf("%s is not read: %v", name, readErr)
		case err == nil && !written:
			t.Errorf("%s was reported as made, and is not there", w.name)
		case err != nil:
			failed++
		}
		if err == nil || !written {
			continue
		}
		made++
		if errors.Is(err, leasestore.ErrRefused) || errors.Is(err, leasestore.ErrConflict) {
			t.Errorf("%s was made, and reported as: %v", w.name, err)
		}
	}
	t.Logf("%d of %d writes failed, %d of them had been made", failed, rounds, made)
	if made == 0 {
		t.Error("no connection was closed between a write and its answer")
	}
}

// reconnect reads until there is an answer, so that the next write has a connection.
func reconnect(t *testing.T, s coordination.Store) {
	t.Helper()
	for range 20 {
		if _, _, err := s.Load(t.Context(), "connected"); err == nil {
			return
		}
	}
	t.Fatal("the store cannot be read")
}

// writes are the ways to write, and how to find what was written.
var writes = []struct {
	name    string
	write   func(context.Context, coordination.Store, string) error
	written func(context.Context, coordination.Store, string) (bool, error)
}{
	{"a lease", func(ctx context.Context, s coordination.Store, name string) error {
		_, err := s.Swap(ctx, name, "", cutRecord)
		return err
	}, hasLease},
	{"a batch", func(ctx context.Context, s coordination.Store, name string) error {
		b, able := s.(leasestore.Batcher)
		if !able {
			_, err := s.Swap(ctx, name, "", cutRecord)
			return err
		}
		return b.SwapAll(ctx, []leasestore.Swap{{Name: name, Next: cutRecord},
			{Name: name + "-2", Next: cutRecord}})[0].Err
	}, hasLease},
	{"a document", func(ctx context.Context, s coordination.Store, name string) error {
		_, err := s.(leasestore.Documents).SwapDocument(ctx, name, "", []byte(name))
		return err
	}, func(ctx context.Context, s coordination.Store, name string) (bool, error) {
		_, version, err := s.(leasestore.Documents).LoadDocument(ctx, name)
		return version != "", err
	}},
}

var cutRecord = leasestore.Record{Owner: "o", Nonce: "CUTCUTCUTCUTCUTCUTCUTCUTCU", Token: 1,
	TTL: 8 * time.Second}

func hasLease(ctx context.Context, s coordination.Store, name string) (bool, error) {
	_, version, err := s.Load(ctx, name)
	return version != "", err
}

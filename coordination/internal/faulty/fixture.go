package faulty

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Session opens a session that is closed when the test ends.
func Session(t testing.TB, s coordination.Store, cfg coordination.Config) *coordination.Session {
	t.Helper()
	out, err := coordination.Open(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = out.Close(ctx)
	})
	return out
}

// Try repeats TryAcquire while a busy machine answers too late.
func Try(t testing.TB, l *coordination.Lease) (*coordination.Grant, error) {
	for {
		g, err := l.TryAcquire(t.Context())
		if !errors.Is(err, coordination.ErrUnknown) || t.Context().Err() != nil {
			return g, err
		}
	}
}

// Restart returns a function that waits, kills servers by a request to an address of lab/testenv,
// and returns when they work again.
func Restart(t *testing.T, address string, after time.Duration) func(context.Context) {
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		answer, err := http.Post(address, "text/plain", http.NoBody)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the servers do not come back: %s", answer.Status)
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

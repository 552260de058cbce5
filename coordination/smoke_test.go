package coordination_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a, err := coordination.Open(st, coordination.Config{Owner: "a"})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := coordination.Open(st, coordination.Config{Owner: "b"})
		g, err := a.Lease("x").Acquire(t.Context())
		t.Log(g, err, time.Now())
		_, err = b.Lease("x").TryAcquire(t.Context())
		t.Log(err)
		time.Sleep(10 * time.Minute)
		t.Log(g.Check(), g.Remaining())
		done := make(chan struct{})
		go func() {
			g, err := b.Lease("x").Acquire(t.Context())
			t.Log("b", g, err, time.Now())
			close(done)
		}()
		time.Sleep(time.Minute)
		t.Log(g.Release(t.Context()))
		<-done
		t.Log(a.Close(t.Context()), b.Close(context.Background()), time.Now())
	})
}

//go:build unix

package cockpit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

// BenchmarkViewer measures the processor use of the process over ten seconds, first without clients
// and then with one open page. Like the real page, the open page also reads a page of entries every
// five seconds. Ten entries change per second in both cases.
func BenchmarkViewer(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d/leases=1000", keys), func(b *testing.B) { viewer(b, keys) })
	}
}

func viewer(b *testing.B, keys int) {
	const leases, span = 1000, 10 * time.Second
	store := memory.New()
	session, err := coordination.Open(store, coordination.Config{Owner: "me"})
	require.NoError(b, err)
	var dd *distributeddata.Replicator
	c := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
		dd, err = distributeddata.New(m.System, distributeddata.Config{MinMembers: 1})
		require.NoError(b, err)
	}})
	defer c.Close()
	m := c.Member(0)
	defer func() {
		_ = lifecycle.Of(m.System).Stop(b.Context(), func(context.Context) error { return nil })
		_ = session.Close(b.Context())
	}()
	require.NoError(b, dd.Ready(b.Context()))
	for at := 0; at < keys; at += 1000 {
		require.NoError(b, distributeddata.Atomically(b.Context(), dd,
			func(tx *distributeddata.Tx) error {
				for i := range 1000 {
					distributeddata.NewKey(fmt.Sprintf("k/%07d", at+i), items{}).In(tx).Add(
						tx.Writer, "x")
				}
				return nil
			}, distributeddata.Local))
	}
	for i := range leases {
		g, err := session.Lease(fmt.Sprintf("l%04d", i)).TryAcquire(b.Context())
		require.NoError(b, err)
		defer func() { _ = g.Release(b.Context()) }()
	}
	h, err := cockpit.New(cockpit.Config{})
	require.NoError(b, err)
	h.Show(cockpit.Sources{
		System: m.System, Sessions: map[string]*coordination.Session{"leases": session},
		Replicators: map[string]*distributeddata.Replicator{"shop": dd},
	})
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Close()
	changing := func() {
		for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(
			100 * time.Millisecond) {
			_, err := distributeddata.NewKey(
				fmt.Sprintf("k/%07d", time.Now().UnixNano()%int64(keys)), items{}).Update(
				b.Context(), dd, func(w *crdt.Writer, v *items) error {
					v.Add(w, "y")
					return nil
				}, distributeddata.Local)
			require.NoError(b, err)
		}
	}
	for b.Loop() {
		before := used()
		changing()
		alone := used() - before

		var bytes atomic.Int64
		ctx, stop := context.WithCancel(b.Context())
		var page sync.WaitGroup
		page.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/stream",
				nil)
			if res, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(counter{&bytes}, res.Body)
				res.Body.Close()
			}
		})
		page.Go(func() {
			for ctx.Err() == nil {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+
					"/api/v1/keys?limit=15", nil)
				if res, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(counter{&bytes}, res.Body)
					res.Body.Close()
				}
				select {
				case <-time.After(5 * time.Second):
				case <-ctx.Done():
				}
			}
		})
		before = used()
		changing()
		watched := used() - before
		stop()
		page.Wait()
		http.DefaultClient.CloseIdleConnections()
		b.ReportMetric(100*alone.Seconds()/span.Seconds(), "%core-alone")
		b.ReportMetric(100*watched.Seconds()/span.Seconds(), "%core-watched")
		b.ReportMetric(float64(bytes.Load())/span.Seconds(), "wire-bytes/s")
	}
	b.ReportMetric(0, "ns/op")
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// used returns the processor time that the process has used.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

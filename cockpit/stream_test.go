package cockpit_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/internal/cockpit/api"
)

// sink is the http.ResponseWriter of an open page. It records what is written.
type sink struct {
	mu     sync.Mutex
	header http.Header
	buf    bytes.Buffer
	status int
	done   chan struct{}
	cancel context.CancelFunc
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) { s.status = status }

func (s *sink) Flush() {}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// take returns the bytes written since the last call.
func (s *sink) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.buf.Reset()
	return s.buf.String()
}

// watch opens a page.
func (w *world) watch() *sink {
	ctx, cancel := context.WithCancel(w.t.Context())
	s := &sink{header: http.Header{}, done: make(chan struct{}), cancel: cancel}
	r := request(http.MethodGet, "/api/v1/stream", "").WithContext(ctx)
	go func() {
		defer close(s.done)
		w.ServeHTTP(s, r)
	}()
	synctest.Wait()
	return s
}

func (s *sink) end() {
	s.cancel()
	<-s.done
}

// running returns the number of goroutines that run code of the package or were started by it.
func running() (n int) {
	buf := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "concord/cockpit.(") {
			n++
		}
	}
	return n
}

func TestNobodyLooks_NothingRuns(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		var pictures atomic.Int64
		h, err := cockpit.New(cockpit.Config{Peers: []string{"http://127.0.0.1:1"}})
		require.NoError(t, err)
		h.OnPicture(func() { pictures.Add(1) })
		h.Show(w.nodes[0].sources())
		h.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "/", ""))
		require.Zero(t, running(), "a mounted handler has no goroutine")
		time.Sleep(time.Minute)
		require.Zero(t, running())
		require.Zero(t, pictures.Load(), "there was no client")
	})
}

func TestStream_OnePictureServesAllPages(t *testing.T) {
	run(t, cockpit.Config{Refresh: time.Second}, func(w *world) {
		var pictures atomic.Int64
		w.OnPicture(func() { pictures.Add(1) })
		a, b := w.watch(), w.watch()
		require.Positive(t, running(), "otherwise the zeros below would prove nothing")
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		require.InDelta(t, 11, pictures.Load(), 1, "two pages share one snapshot per second")
		first := a.take()
		for _, section := range []string{"hello", "node", "health", "cluster", "peers",
			"replicators", "sessions", "singletons", "types", "changes", "problems", "events"} {
			require.Contains(t, first, "event: "+section+"\n")
		}
		require.Equal(t, strings.Count(first, "event: cluster\n"),
			strings.Count(b.take(), "event: cluster\n"))
		a.end()
		w.add("cart", "milk")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		news := b.take()
		require.Contains(t, news, `"key":"cart"`)
		require.NotContains(t, news, "event: cluster\n", "unchanged sections are not sent again")
		b.end()
		synctest.Wait()
		require.Zero(t, running(), "closing the last page stops the snapshots")
		n := pictures.Load()
		time.Sleep(time.Minute)
		require.Equal(t, n, pictures.Load())
	})
}

func TestStream_ALossShowsWithinASecond(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		page := w.watch()
		time.Sleep(3 * time.Second)
		page.take()
		lost := w.Member(2)
		w.Crash(lost)
		w.Expel(lost)
		time.Sleep(time.Second)
		synctest.Wait()
		news := page.take()
		require.Contains(t, news, lost.Address+" is missing")
		require.Contains(t, news, "event: problems\n")
		page.end()
	})
}

func TestStream_AtMostSoManyPages(t *testing.T) {
	run(t, cockpit.Config{MaxViewers: 2}, func(w *world) {
		a, b := w.watch(), w.watch()
		status, _ := w.refused(request(http.MethodGet, "/api/v1/stream", ""))
		require.Equal(t, http.StatusServiceUnavailable, status)
		time.Sleep(time.Second)
		require.Equal(t, 2, get[api.Node](w, "node").Viewers)
		a.end()
		c := w.watch()
		require.Contains(t, c.take(), "event: cluster\n")
		b.end()
		c.end()
	})
}

func TestStream_CloseEndsAllPages(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		a := w.watch()
		w.Handler.Close()
		<-a.done
		status, _ := w.refused(request(http.MethodGet, "/api/v1/stream", ""))
		require.Equal(t, http.StatusServiceUnavailable, status)
		w.Handler.Close()
	})
}

// stuck is the http.ResponseWriter of a page whose writes block.
type stuck struct {
	http.ResponseWriter
	let chan struct{}
}

func (s *stuck) Flush() {}

func (s *stuck) Write(p []byte) (int, error) { <-s.let; return 0, http.ErrHandlerTimeout }

func TestStream_ASlowPageHoldsNobodyUp(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		slow := &stuck{httptest.NewRecorder(), make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.ServeHTTP(slow, request(http.MethodGet, "/api/v1/stream", ""))
		}()
		page := w.watch()
		page.take()
		for range 10 {
			w.add("cart", time.Now().String())
			time.Sleep(time.Second)
			synctest.Wait()
			require.Contains(t, page.take(), "event: changes\n")
		}
		close(slow.let)
		<-done
		page.end()
	})
}

package cockpit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// Bounds of a stream.
const (
	writeTimeout = 10 * time.Second // the stream is closed if a write takes longer
	aliveEvery   = 15 * time.Second
	maxStreamed  = 40 // events in section events
	costEvery    = 2 * time.Second
)

// hub takes snapshots while pages are open. All pages share them.
//
// A page has no queue. The hub wakes it, and the page then writes the sections that have changed
// since its last write. A slow page therefore skips intermediate versions.
type hub struct {
	h *Handler

	mu struct {
		sync.Mutex
		open     map[chan struct{}]struct{} // wakes each page; capacity 1
		sections map[string]section
		seq      uint64
		cost     time.Time // when sections node and times were last updated
		stop     context.CancelFunc
		running  chan struct{} // closed when the current goroutines have returned
		closed   chan struct{} // closed by close; nil before the first join or close
		shut     bool
	}
}

// section is one part of the snapshot, encoded as JSON.
type section struct {
	seq uint64 // sequence number of its last change
	raw []byte
}

// viewers returns the number of open pages.
func (b *hub) viewers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mu.open)
}

// Errors of a page that opens after Close, or beside too many others.
var (
	errClosed = errors.New("the cockpit is closed")
	errFull   = errors.New("too many pages are open: see Config.MaxViewers")
)

// join registers a page. The first page starts the snapshots.
func (b *hub) join() (wake chan struct{}, closed <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.closed == nil {
		b.mu.closed = make(chan struct{})
	}
	switch {
	case b.mu.shut:
		return nil, nil, errClosed
	case len(b.mu.open) >= b.h.cfg.MaxViewers:
		return nil, nil, errFull
	case b.mu.open == nil:
		b.mu.open, b.mu.sections = map[chan struct{}]struct{}{}, map[string]section{}
	}
	wake = make(chan struct{}, 1)
	wake <- struct{}{}
	b.mu.open[wake] = struct{}{}
	if len(b.mu.open) == 1 {
		b.start()
	}
	return wake, b.mu.closed, nil
}

// start starts the goroutines. b.mu must be held.
func (b *hub) start() {
	ctx, cancel := context.WithCancel(context.Background())
	before, done := b.mu.running, make(chan struct{})
	b.mu.stop, b.mu.running = cancel, done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		if len(b.h.cfg.Peers) > 0 {
			wg.Go(func() { every(ctx, peerEvery, func() { b.h.peers.refresh(ctx) }) })
		}
		every(ctx, b.h.cfg.Refresh, b.refresh)
		b.h.forgetPicture()
	}()
}

// every calls f immediately and then every d, until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// leave removes a page. The last page stops the snapshots and waits until they have stopped.
func (b *hub) leave(wake chan struct{}) {
	b.mu.Lock()
	delete(b.mu.open, wake)
	var running chan struct{}
	if len(b.mu.open) == 0 {
		b.mu.stop()
		running = b.mu.running
		b.mu.sections = map[string]section{}
	}
	b.mu.Unlock()
	if running != nil {
		<-running
	}
}

func (b *hub) close() {
	b.mu.Lock()
	if b.mu.closed == nil {
		b.mu.closed = make(chan struct{})
	}
	if !b.mu.shut {
		b.mu.shut = true
		close(b.mu.closed)
	}
	running := b.mu.running
	if b.mu.stop != nil {
		b.mu.stop()
	}
	b.mu.Unlock()
	if running != nil {
		<-running
	}
}

// refresh takes a snapshot and wakes the pages if anything has changed.
func (b *hub) refresh() {
	o := b.h.overview()
	made := map[string][]byte{}
	for name, of := range sections {
		if (name == "node" || name == "times") && time.Since(b.cost()) < costEvery {
			continue
		}
		made[name] = encode(of(o))
	}
	made["events"] = encode(b.h.ring.after(0, maxStreamed))
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for name, raw := range made {
		if name == "node" {
			b.mu.cost = time.Now()
		}
		if old, ok := b.mu.sections[name]; ok && bytes.Equal(old.raw, raw) {
			continue
		}
		b.mu.seq++
		b.mu.sections[name] = section{b.mu.seq, raw}
		changed = true
	}
	if !changed {
		return
	}
	for wake := range b.mu.open {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

func (b *hub) cost() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.mu.sections["node"]; !ok {
		return time.Time{}
	}
	return b.mu.cost
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		raw, _ = json.Marshal(api.Error{Version: api.Version, Error: err.Error()}) // cannot fail
	}
	return raw
}

// since returns the sections that have changed after seq, sorted by name, and the current sequence
// number.
func (b *hub) since(seq uint64) (names []string, raw map[string][]byte, now uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	raw = map[string][]byte{}
	for name, s := range b.mu.sections {
		if s.seq > seq {
			raw[name] = s.raw
		}
	}
	return slices.Sorted(maps.Keys(raw)), raw, b.mu.seq
}

// serve answers with a stream of server-sent events. Each event has the name of a section, and its
// data is the current version of that section.
func (b *hub) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	wake, closed, err := b.join()
	if err != nil {
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer b.leave(wake)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	var seq uint64
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "retry: 1000\nevent: hello\ndata: {\"version\":%d}\n\n", api.Version)
	for {
		select {
		case <-wake:
			var names []string
			var raw map[string][]byte
			names, raw, seq = b.since(seq)
			for _, name := range names {
				fmt.Fprintf(&buf, "event: %s\ndata: %s\n\n", name, raw[name])
			}
			if len(names) > 0 {
				fmt.Fprintf(&buf, "event: at\ndata: %q\n\n",
					time.Now().UTC().Format(time.RFC3339Nano))
			}
		case <-alive.C:
			buf.WriteString(": alive\n\n")
		case <-closed:
			return
		case <-r.Context().Done():
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // if the server supports it
		if _, err := w.Write(buf.Bytes()); err != nil || out.Flush() != nil {
			return
		}
		buf.Reset()
	}
}

package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/logging"
	"github.com/concord-go/concord/internal/membership"
)

// Health reports the state of a member under Run, over all its incarnations. The zero value is
// ready to use: set RunConfig.Health to it, and serve it, for instance on a port of its own. It is
// an http.Handler for the paths /livez and /readyz. It answers 200 or 503, with one line for each
// reason.
type Health struct {
	mu struct {
		sync.Mutex
		state  state
		since  time.Time
		system *actor.ActorSystem // nil unless up or stopping
		cause  error              // of the end of the last incarnation, while the member rejoins
		log    *slog.Logger       // of Run

		session     *coordination.Session // of that incarnation; nil: there is none
		address     string                // of the last incarnation that was up
		incarnation int                   // its number
		counted     *atomic.Int64         // see Node
		splits      uint64                // that the incarnations before it have noticed
	}
}

// state is the state of a member under Run.
type state uint8

const (
	stateNone state = iota // Run has not been called
	stateStarting
	stateUp
	stateBetween
	stateStopping
	stateStopped
)

var stateNames = [...]string{"not running", "starting", "up", "rejoining", "stopping",
	"stopped"}

func (s state) String() string { return stateNames[s] }

// stuck is how long a member may be rejoining or starting before its process should be restarted.
const stuck = 5 * time.Minute

func (h *Health) set(s state, system *actor.ActorSystem, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s == stateStarting && h.mu.state == stateBetween {
		return // the member rejoins until it is up
	}
	h.mu.state, h.mu.since, h.mu.system, h.mu.cause = s, time.Now(), system, cause
}

// logsTo records the logger of Run.
func (h *Health) logsTo(log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.log = log
}

// up records that an incarnation is up.
func (h *Health) up(n *Node) {
	h.set(stateUp, n.System, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.session, h.mu.address, h.mu.incarnation = n.Session, n.System.Address(), n.Incarnation
	h.mu.counted = &n.counted
}

// over records that an incarnation has ended.
func (h *Health) over(system *actor.ActorSystem, cause error) {
	h.set(stateBetween, nil, cause)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.splits += membership.Attach(system).Stats().Splits
}

// Live returns nil unless the process should be restarted: Run has returned, or the member has not
// come up for five minutes. A member that has been rejoining for less time is alive.
func (h *Health) Live() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch s, since := h.mu.state, time.Since(h.mu.since); {
	case s == stateNone, s == stateStopped:
		return fmt.Errorf("node: %v", s)
	case s != stateUp && since > stuck:
		return errors.Join(fmt.Errorf("node: %v for %v", s, since.Round(time.Second)), h.mu.cause)
	}
	return nil
}

// Ready returns nil while the member is in the cluster, is not split off, is on the side that hosts
// singletons and shards if members are missing, and every component can be used.
func (h *Health) Ready() error {
	h.mu.Lock()
	s, system, cause := h.mu.state, h.mu.system, h.mu.cause
	h.mu.Unlock()
	if s != stateUp {
		return errors.Join(fmt.Errorf("node: %v", s), cause)
	}
	if err := RemovalCause(system); err != nil {
		return err
	}
	return lifecycle.Of(system).Check()
}

// ServeHTTP implements http.Handler.
func (h *Health) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var err error
	switch {
	case strings.HasSuffix(req.URL.Path, "/livez"):
		err = h.Live()
	case strings.HasSuffix(req.URL.Path, "/readyz"):
		err = h.Ready()
	default:
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
	} else {
		fmt.Fprintln(w, "ok")
	}
	for _, line := range h.details() {
		fmt.Fprintln(w, line)
	}
}

// details returns lines for human readers.
func (h *Health) details() (lines []string) {
	h.mu.Lock()
	system, session, log := h.mu.system, h.mu.session, h.mu.log
	counted := h.mu.counted
	h.mu.Unlock()
	if system == nil {
		return nil
	}
	if d := logging.Blocked(log); d > 0 {
		lines = append(lines, fmt.Sprintf("the log handler has not returned for %v: what this "+
			"member logs is not seen", d.Round(time.Second)))
	}
	if session != nil && session.Failing() {
		lines = append(lines, "the lease store does not answer: until it does, no singleton "+
			"or shard starts here, and those that run stop before their leases end")
	}
	members := membership.Attach(system)
	lost := members.Lost()
	if v := members.View(); v != nil {
		all := len(v.Members) + len(lost)
		if counted != nil { // also those that this member has never seen
			all = max(all, int(counted.Load()))
		}
		lines = append(lines, fmt.Sprintf("members: %d of %d: %s", len(v.Members), all,
			membership.Addresses(v.Members)))
	}
	if len(lost) > 0 {
		lines = append(lines, "missing: "+membership.Names(lost))
	}
	if others, since := members.Split(); len(others) > 0 {
		lines = append(lines, fmt.Sprintf("split for %v from: %s",
			time.Since(since).Round(time.Second), membership.Addresses(others)))
	}
	if g := gate.Of(system).State(); !g.Open {
		lines = append(lines, "no singletons and shards here: "+strings.Join(g.Why, "; "))
	}
	return lines
}

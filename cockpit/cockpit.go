package cockpit

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// Sources are the components that a cockpit shows, by display name.
type Sources struct {
	System      *actor.ActorSystem // of the member; nil: membership is not shown
	Incarnation int                // of the member, from 1
	Sessions    map[string]*coordination.Session
	Replicators map[string]*distributeddata.Replicator
	Singletons  map[string]*singleton.Singleton
	Shards      []Shards
}

// Shards is implemented by *sharding.Region of any message type.
type Shards interface {
	Status() sharding.Status
	Stats() sharding.Stats
}

// allocator is implemented by Shards whose shards can be moved.
type allocator interface {
	Allocate(ctx context.Context, homes map[int]string) error
}

// Handler serves the cockpit of one process, across all incarnations of its member. Its methods are
// safe for concurrent use. Use New to create one.
type Handler struct {
	cfg     Config
	hidden  hidden
	routes  map[string]route
	limit   limiter
	failed  failures // to authorize
	ring    ring
	book    book
	peers   peers
	hub     hub
	started time.Time

	mu struct {
		sync.Mutex
		sources Sources
	}
	picture struct {
		sync.Mutex
		last    *api.Overview
		at      time.Time // monotonic
		fault   *api.Fault
		recent  recent
		times   view.Times
		pending bool // the sources have changed: the next snapshot is not compared with last
	}
	pictures func() // called for each snapshot; set by tests
}

// New returns a handler that shows no components until Attach or Show is called. It starts no
// goroutine. Its error matches ErrInvalid.
func New(cfg Config) (*Handler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg.withDefaults(), hidden: newHidden(cfg.Hide), started: time.Now().UTC()}
	h.limit = limiter{rate: float64(h.cfg.RequestsPerSecond),
		burst: 10 * float64(h.cfg.RequestsPerSecond)}
	h.hub.h, h.peers.h = h, h
	h.routes = h.table()
	return h, nil
}

// Show replaces the components that the handler shows. It leaves out nil ones, as Node.Session is
// without a lease store. The caller may change the maps and the slice afterwards.
func (h *Handler) Show(s Sources) {
	s.Sessions, s.Replicators, s.Singletons = present(s.Sessions), present(s.Replicators),
		present(s.Singletons)
	s.Shards = slices.DeleteFunc(slices.Clone(s.Shards), func(r Shards) bool {
		v := reflect.ValueOf(r)
		return r == nil || v.Kind() == reflect.Pointer && v.IsNil()
	})
	h.mu.Lock()
	h.mu.sources = s
	h.mu.Unlock()
	h.picture.Lock()
	defer h.picture.Unlock()
	h.picture.at = time.Time{}
	h.picture.pending = true
}

// present returns a copy of a map without its nil values.
func present[T any](all map[string]*T) map[string]*T {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(_ string, one *T) bool { return one == nil })
	return all
}

// Attach calls Show for one incarnation of a member. It adds to s the system of n and, under the
// name "leases", the session of n, unless s has that session or that name already. When the
// incarnation has ended, the handler drops the system. Call Attach in the register function of
// node.Run. It returns an error if the incarnation is already ending, and ErrInvalid if n is nil.
func (h *Handler) Attach(n *node.Node, s Sources) error {
	if n == nil {
		return fmt.Errorf("%w: no node to attach to", ErrInvalid)
	}
	s.System, s.Incarnation = n.System, n.Incarnation
	if n.Session != nil {
		sessions := map[string]*coordination.Session{}
		mine := true
		for name, session := range s.Sessions {
			sessions[name] = session
			mine = mine && session != n.Session
		}
		if _, taken := sessions[defaultSession]; mine && !taken {
			sessions[defaultSession] = n.Session
		}
		s.Sessions = sessions
	}
	h.Show(s)
	_, err := lifecycle.OnStop(n.System, lifecycle.Session, "cockpit", func(context.Context) error {
		h.detach(n.System)
		return nil
	})
	return err
}

// defaultSession is the name under which Attach adds the session of the node.
const defaultSession = "leases"

// detach drops the system, unless the handler shows another one by now.
func (h *Handler) detach(system *actor.ActorSystem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.sources.System == system {
		h.mu.sources.System = nil
	}
}

// sources returns the components to show.
func (h *Handler) sources() Sources {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.sources
}

// Close ends the streams of all open pages and rejects new ones. http.Server.Shutdown waits for
// open streams, so call Close first. Close waits until the handler's own goroutines have stopped.
// The handler still answers other requests.
func (h *Handler) Close() { h.hub.close() }

var _ http.Handler = (*Handler)(nil)

package cockpit

import (
	"cmp"
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/sharding"
)

// overview returns a snapshot that is younger than half of Refresh. If it takes a new one, it
// stores it and records the differences from the last one as events.
func (h *Handler) overview() *api.Overview {
	h.picture.Lock()
	defer h.picture.Unlock()
	p := &h.picture
	if p.last != nil && !p.at.IsZero() && time.Since(p.at) < h.cfg.Refresh/2 {
		return p.last
	}
	if h.pictures != nil {
		h.pictures()
	}
	s := h.sources()
	o, shards := h.gather(s)
	p.fault = view.Fault(p.fault, o)
	o.Cluster.Fault = p.fault
	p.recent.note(s, h.hidden, o.At)
	o.Changes = p.recent.list()
	p.times.Note(o, shards, 2*h.cfg.Refresh+time.Second)
	o.Times = p.times.List()
	o.Problems = view.Problems(o)
	if !p.pending {
		for _, e := range view.Diff(p.last, o) {
			h.ring.add(e)
		}
	}
	p.last, p.at, p.pending = o, time.Now(), false
	return o
}

// forgetPicture drops the snapshots of entries that the last picture keeps in memory. The hub calls
// it when the last page has closed.
func (h *Handler) forgetPicture() {
	h.picture.Lock()
	defer h.picture.Unlock()
	h.picture.recent.forget()
}

// gather takes a snapshot of all components. It also returns the status of the shards, of which the
// overview has only a summary.
func (h *Handler) gather(s Sources) (*api.Overview, []sharding.Status) {
	now := time.Now().UTC()
	seen := cluster(s.System)
	address := h.book.of(s.System, seen)
	o := &api.Overview{
		Version: api.Version, At: now, Node: h.node(s), Health: h.health(), Cluster: seen,
		Peers:       h.peers.last(),
		Replicators: []api.Replicator{}, Sessions: []api.Session{}, Singletons: []api.Singleton{},
		Shards: []api.Shards{},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Replicators)) {
		o.Replicators = append(o.Replicators, view.Replicator(name, address,
			s.Replicators[name].Status()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sessions)) {
		o.Sessions = append(o.Sessions, h.session(name, s.Sessions[name], now))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Singletons)) {
		one := s.Singletons[name]
		place, known := one.Where()
		o.Singletons = append(o.Singletons, view.Singleton(name, o.Cluster.Self, place, known,
			one.Stats()))
	}
	var shards []sharding.Status
	for _, r := range s.Shards {
		st := r.Status()
		shards = append(shards, st)
		o.Shards = append(o.Shards, view.Shards(st, r.Stats(), o.Cluster, address))
	}
	return o, shards
}

// maxBook bounds the number of addresses that a book remembers.
const maxBook = 4096

// book remembers the addresses of members by id. Replicas and shards refer to members by id for
// some time after the members have left the view.
type book struct {
	mu sync.Mutex
	at map[string]string
}

// of adds the members of a view to the book. It returns a function that maps the id of a member to
// its address, and returns anything else unchanged. It also finds members that have left the view
// while the cockpit had no clients.
func (b *book) of(system *actor.ActorSystem, c api.Cluster) func(id string) string {
	known := func(string) string { return "" }
	if system != nil {
		if members, attached := membership.Lookup(system); attached {
			known = members.Address
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil || len(b.at) > maxBook {
		b.at = map[string]string{}
	}
	for _, m := range c.Members {
		b.at[m.ID] = m.Address
	}
	return func(id string) string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return cmp.Or(b.at[id], known(id), id)
	}
}

func (h *Handler) session(name string, s *coordination.Session, now time.Time) api.Session {
	status := s.Status()
	if h.cfg.HideOwners {
		status.Owner = ""
	}
	return view.Session(name, status, s.Failing(), h.leases(name, s, now))
}

// leases returns the leases of a session that are not hidden, ordered by name.
func (h *Handler) leases(session string, s *coordination.Session, now time.Time) (all []api.Lease) {
	for _, st := range s.Leases() {
		if h.hidden.has(st.Name) {
			continue
		}
		if h.cfg.HideOwners {
			st.Owner, st.Failure = "", nil
		}
		all = append(all, view.Lease(session, st, now))
	}
	return all
}

func (h *Handler) node(s Sources) api.Node {
	n := api.Node{
		Name: h.cfg.Name, Started: h.started, Incarnation: s.Incarnation, CPUSeconds: cpuSeconds(),
		Goroutines: runtime.NumGoroutine(),
		Viewers:    h.hub.viewers(), Actions: h.cfg.Actions, Values: len(h.cfg.Values) > 0,
		Metrics: h.cfg.Metrics != nil, Versions: versions(),
	}
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if metrics.Read(heap); heap[0].Value.Kind() == metrics.KindUint64 {
		n.HeapBytes = heap[0].Value.Uint64()
	}
	return n
}

// versions returns the versions of the program, which readers share.
var versions = sync.OnceValue(func() map[string]string {
	v := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v["go"], v["program"] = info.GoVersion, info.Main.Path+" "+info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v["revision"] = s.Value
		}
	}
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "github.com/concord-go/concord") ||
			m.Path == "github.com/asynkron/protoactor-go" {
			v[m.Path] = m.Version
		}
	}
	return v
})

func (h *Handler) health() api.Health {
	out := api.Health{Why: []string{}}
	if h.cfg.Health == nil {
		return out
	}
	out.Known = true
	live, ready := h.cfg.Health.Live(), h.cfg.Health.Ready()
	out.Live, out.Ready = live == nil, ready == nil
	for _, err := range []error{live, ready} {
		if err != nil && !slices.Contains(out.Why, err.Error()) {
			out.Why = append(out.Why, view.Cut(err.Error(), 300))
		}
	}
	return out
}

// cluster returns the member's view of its cluster.
func cluster(system *actor.ActorSystem) api.Cluster {
	c := api.Cluster{Members: []api.Member{}, Lost: []string{}, Split: []string{},
		GateWhy: []string{}, GateOpen: true}
	if system == nil {
		return c
	}
	members, attached := membership.Lookup(system)
	if !attached {
		return c
	}
	if g := gate.Of(system).State(); !g.Open {
		c.GateOpen, c.GateWhy = false, g.Why
	}
	v := members.View()
	if v == nil {
		return c
	}
	c.Name, c.Self = v.Cluster, v.Self.Address
	rank := map[string]int{}
	for i, m := range v.ByAge("") {
		rank[m.ID] = i + 1
	}
	for _, m := range v.Members {
		c.Members = append(c.Members, api.Member{ID: m.ID, Address: m.Address,
			Roles: append([]string{}, m.Roles...), Self: m.ID == v.Self.ID, Rank: rank[m.ID],
			AppVersion: m.AppVersion})
	}
	c.Lost = append(c.Lost, members.Lost()...)
	others, since := members.Split()
	for _, m := range others {
		c.Split = append(c.Split, m.Address)
	}
	if len(others) > 0 {
		c.SplitSince = new(since.UTC())
	}
	if v.Removed && v.Cause != nil {
		c.Removed = v.Cause.Error()
	}
	c.CutOff = view.CutOff(c)
	return c
}

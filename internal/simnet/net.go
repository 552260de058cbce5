package simnet

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// Options are the options of a network. The zero value is a perfect network without latency.
type Options struct {
	// Seed is the seed of all pseudo-random numbers.
	Seed uint64
	// Latency is added to every message, as is Jitter, a random addition below it. Order is kept.
	Latency, Jitter time.Duration
	// MaxMessage is the maximum message size in bytes; 0 means 4 MiB as in gRPC. Larger messages
	// are lost and counted as Oversize.
	MaxMessage int
}

// Net is a network. It is safe for concurrent use.
type Net struct {
	opts    Options
	courier *courier
	workers *workers

	mu struct {
		sync.Mutex
		hosts   map[string]*host // the listeners by address
		links   map[direction]*Link
		watch   []func(Packet)
		closed  bool
		refused []string
	}
}

type direction struct{ from, to string }

// host is one system on the network. Another system may take over its address later.
type host struct {
	system *actor.ActorSystem

	// Guarded by Net.mu.
	down   bool
	frozen bool
	held   []func() // messages from and to a frozen host, in order
}

// Packet is a message on the network as seen by an observer.
type Packet struct {
	From, To string // addresses
	Target   string // id of the target process
	Message  proto.Message
	Size     int
	Verdict  Verdict
}

// New returns a network without systems.
func New(opts Options) *Net {
	if opts.MaxMessage == 0 {
		opts.MaxMessage = 4 << 20
	}
	n := &Net{opts: opts, courier: newCourier(), workers: &workers{}}
	n.mu.hosts = map[string]*host{}
	n.mu.links = map[direction]*Link{}
	return n
}

// Join gives system the address, replacing any other system there. Call it before any actor is
// spawned in system.
func (n *Net) Join(system *actor.ActorSystem, address string) {
	shrink(system)
	n.workers.employ(system)
	h := &host{system: system}
	system.ProcessRegistry.Address = address
	system.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) {
		return &remote{n, h, n.Link(address, pid.Address)}, true
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.mu.hosts[address]; old != nil {
		old.down, old.frozen, old.held = true, false, nil
	}
	n.mu.hosts[address] = h
}

// Crash permanently removes system from the network: no messages come in or go out any longer. Its
// actors continue to run, like those of a process that is cut off; the difference cannot be seen
// from outside.
func (n *Net) Crash(system *actor.ActorSystem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for address, h := range n.mu.hosts {
		if h.system == system {
			h.down, h.frozen, h.held = true, false, nil
			delete(n.mu.hosts, address)
		}
	}
}

// Link returns the direction from one address to another. The addresses need not be in use.
func (n *Net) Link(from, to string) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := direction{from, to}
	l := n.mu.links[d]
	if l == nil {
		l = newLink(n, d)
		n.mu.links[d] = l
	}
	return l
}

// Cut stops all traffic between a and b, both ways. Use Link for one direction.
func (n *Net) Cut(a, b string) {
	for _, l := range []*Link{n.Link(a, b), n.Link(b, a)} {
		l.Change(func(f *Faults) { f.Cut = true })
	}
}

// Partition cuts every address of each side from those of the other sides. Other links are
// unchanged.
func (n *Net) Partition(sides ...[]string) {
	for i, side := range sides {
		for _, other := range sides[i+1:] {
			for _, a := range side {
				for _, b := range other {
					n.Cut(a, b)
				}
			}
		}
	}
}

// SetAll sets the faults of every direction between different addresses of systems on the network.
func (n *Net) SetAll(f Faults) {
	addresses := n.Addresses()
	for _, a := range addresses {
		for _, b := range addresses {
			if a != b {
				n.Link(a, b).Set(f)
			}
		}
	}
}

// Heal ends all faults of all links and of single messages. It does not restore lost messages.
func (n *Net) Heal() {
	for _, l := range n.links() {
		l.heal()
	}
}

// Addresses returns the addresses of the systems on the network, sorted.
func (n *Net) Addresses() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.mu.hosts))
}

// Observe calls f for every message when it is sent, with its verdict, in the goroutine of the
// sender. f must not call the network.
func (n *Net) Observe(f func(Packet)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.watch = append(slices.Clone(n.mu.watch), f)
}

// Stats returns the sum over all links.
func (n *Net) Stats() Stats {
	var sum Stats
	for _, l := range n.links() {
		sum.add(l.Stats())
	}
	return sum
}

// Unserialisable returns the Go types of messages that were not protobuf messages. Remoting only
// logs and drops them, so a test that finds any has found a mistake.
func (n *Net) Unserialisable() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.mu.refused)
}

// Close ends all traffic, including messages in flight.
func (n *Net) Close() {
	n.mu.Lock()
	n.mu.closed = true
	clear(n.mu.hosts)
	n.mu.Unlock()
	n.courier.close()
	n.workers.close()
}

func (n *Net) links() []*Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.mu.links))
}

// Flying returns the number of messages in flight, and when the first one is due. Messages held for
// a frozen host do not count.
func (n *Net) Flying() (due time.Time, count int) { return n.courier.flying() }

// up reports whether h may send.
func (n *Net) up(h *host) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.mu.closed && !h.down
}

// listener returns the system that listens on address now.
func (n *Net) listener(address string) *actor.ActorSystem {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.mu.hosts[address]; h != nil && !h.down {
		return h.system
	}
	return nil
}

func (n *Net) refuse(typeName string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.mu.refused, typeName) {
		n.mu.refused = append(n.mu.refused, typeName)
	}
}

func (n *Net) observe(p Packet) {
	n.mu.Lock()
	watch := n.mu.watch
	n.mu.Unlock()
	if len(watch) == 0 {
		return
	}
	p.Message = proto.Clone(p.Message)
	for _, f := range watch {
		f(p)
	}
}

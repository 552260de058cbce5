package singleton

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/early"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// news is the actor that exchanges the announcements of all singletons of a member with the other
// members. It sends one message a second to each of them, whatever the number of singletons, and
// one more for each change.
type news struct {
	system  *actor.ActorSystem
	members *membership.Service
	panics  atomic.Uint64

	once sync.Once
	self *actor.PID

	// The rest belongs to the actor. It survives a restart.
	view     *membership.View
	tick     *timer.Timer
	ticks    uint64
	bindings map[string]*binding // of this member, by the name of the singleton
	own      map[string]*pb.SingletonWord
	version  uint64
	peers    map[string]*teller // by member id
}

// teller is another member that announces its singletons.
type teller struct {
	member  core.Member
	listed  uint64 // the tick at which it was listed
	version uint64
	words   map[string]*pb.SingletonWord
}

// Messages to the actor.
type (
	attend struct{ binding *binding } // an actor of this incarnation runs, or has a new view
	depart struct{ binding *binding } // the actors of this incarnation have ended
	say    struct {                   // by the manager of this incarnation
		binding *binding
		word    *pb.SingletonWord
	}
)

// said is an announcement of a member, for the manager and the proxy of a singleton.
type said struct {
	from    core.Member
	word    *pb.SingletonWord
	differs bool // that member has other settings
}

func (s *said) event() core.Announcement {
	w := s.word
	ev := core.Announcement{From: s.from, Seq: w.Sequence, Failing: w.Failing, Claims: w.Claims,
		Token: w.Token}
	if w.Abstains {
		ev.For = announcedFor
	}
	return ev
}

// announcedFor is how long an announcement is valid. Nine in a row may be lost.
const announcedFor = 10 * time.Second

const (
	newsName  = "concord-singletons"
	newsEvery = time.Second
	// refreshEvery is the number of seconds after which an unchanged announcement is passed on
	// again to the actors here. That of a host is passed on each second.
	refreshEvery = 3
	// maxWords bounds the words of one message, which fit into an envelope. A member has at most
	// maxSingletons.
	maxWords      = 1000
	maxSingletons = 100_000
	maxName       = 64
)

var (
	newsID   = extensions.NextExtensionID()
	newsLock sync.Mutex // guards our slot in the registry of every system
)

// ExtensionID implements extensions.Extension.
func (*news) ExtensionID() extensions.ExtensionID { return newsID }

// newsOf returns the news of a system, and starts its actor at the first call.
func newsOf(system *actor.ActorSystem, members *membership.Service) *news {
	newsLock.Lock()
	n, ok := system.Extensions.Get(newsID).(*news)
	if !ok {
		n = &news{system: system, members: members, bindings: map[string]*binding{},
			own: map[string]*pb.SingletonWord{}, peers: map[string]*teller{}}
		system.Extensions.Register(n)
	}
	newsLock.Unlock()
	n.once.Do(func() {
		props := actor.PropsFromProducer(func() actor.Actor { return n }, early.Mailbox(),
			bugs.Guardian("singletons", &n.panics))
		n.self, _ = system.Root.SpawnNamed(props, newsName) // once for each system
	})
	return n
}

func (n *news) tell(msg any) {
	if n.self != nil {
		contain.Send(n.system, n.self, msg)
	}
}

// Receive implements actor.Actor.
func (n *news) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if n.tick == nil {
			n.tick = timer.New(ctx.ActorSystem(), ctx.Self())
		}
		n.listen(ctx)
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.AutoRespond:
	case *attend:
		if n.attend(ctx, m.binding) {
			for _, p := range n.peers {
				n.pass(p, m.binding.cfg.Name)
			}
		}
	case *depart:
		n.depart(ctx, m.binding)
	case *say:
		if n.attend(ctx, m.binding) {
			n.say(m)
		}
	case *membership.View:
		n.onView(m)
	case *timer.Fired:
		if n.tick.Mine(m) {
			n.onTick()
		}
	case *pb.Envelope:
		n.onEnvelope(m)
	}
}

// listen subscribes to views and arms the timer while there are singletons here.
func (n *news) listen(ctx actor.Context) {
	if len(n.bindings) == 0 || n.tick.Armed() {
		return
	}
	n.members.Subscribe(ctx.Self())
	n.tick.Set(newsEvery, nil)
}

// attend registers an incarnation, and reports whether it has not ended.
func (n *news) attend(ctx actor.Context, l *binding) bool {
	if l.departed {
		return false
	}
	n.bindings[l.cfg.Name] = l
	n.listen(ctx)
	n.passOwn(l)
	return true
}

// passOwn passes the announcement of the manager here on to the proxy here.
func (n *news) passOwn(l *binding) {
	if w := n.own[l.cfg.Name]; w != nil && n.view != nil {
		contain.Send(n.system, l.proxy, &said{from: member(n.view.Self), word: w})
	}
}

func (n *news) depart(ctx actor.Context, l *binding) {
	name := l.cfg.Name
	l.departed = true
	if n.bindings[name] != l {
		return
	}
	delete(n.bindings, name)
	if _, ok := n.own[name]; ok {
		delete(n.own, name)
		n.version++ // the others ask for the words that remain
	}
	if len(n.bindings) == 0 {
		n.tick.Stop()
		n.members.Unsubscribe(ctx.Self())
	}
}

// say records an announcement of a manager here, and sends it at once if it is new.
func (n *news) say(m *say) {
	was := n.own[m.word.Name]
	n.own[m.word.Name] = m.word
	if was == nil || !proto.Equal(was, m.word) {
		n.version++
		n.send(&pb.SingletonNews{Version: n.version, Words: []*pb.SingletonWord{m.word}})
	}
	n.passOwn(m.binding)
}

func (n *news) onView(v *membership.View) {
	first := n.view == nil
	n.view = v
	if first {
		for _, l := range n.bindings {
			n.passOwn(l)
		}
	}
	maps.DeleteFunc(n.peers, func(id string, p *teller) bool {
		m, ok := v.Find(id)
		gone := !ok || m.Incarnation != p.member.Incarnation
		for _, l := range n.bindings {
			if gone && l.differs.Load() == p {
				l.differs.Store(nil)
			}
		}
		return gone
	})
	for _, m := range v.Members {
		if m.ID != v.Self.ID && n.peers[m.ID] == nil {
			n.peers[m.ID] = &teller{member: member(m), listed: n.ticks,
				words: map[string]*pb.SingletonWord{}}
			n.sendWhole(member(m))
		}
	}
}

func (n *news) onTick() {
	n.ticks++
	n.tick.Set(newsEvery, nil)
	n.send(&pb.SingletonNews{Version: n.version})
}

// send sends a message to every other member.
func (n *news) send(m *pb.SingletonNews) {
	if n.view == nil {
		return
	}
	m.Count = uint32(len(n.own))
	for _, to := range n.view.Members {
		if to.ID != n.view.Self.ID {
			n.post(member(to), m)
		}
	}
}

func (n *news) sendWhole(to core.Member) {
	words := make([]*pb.SingletonWord, 0, len(n.own))
	for _, name := range slices.Sorted(maps.Keys(n.own)) {
		words = append(words, n.own[name])
	}
	m := &pb.SingletonNews{Version: n.version, Count: uint32(len(words)), Whole: true}
	for {
		k := min(len(words), maxWords)
		m.Words, words = words[:k], words[k:]
		n.post(to, m)
		if len(words) == 0 {
			return
		}
		m = &pb.SingletonNews{Version: n.version, Count: m.Count}
	}
}

func (n *news) post(to core.Member, m *pb.SingletonNews) {
	if n.view == nil || n.view.Removed {
		return
	}
	payload, err := proto.Marshal(m)
	if err != nil {
		return // a name that is no UTF-8 does not pass validate
	}
	h := wire.Header{Cluster: n.view.Cluster, Member: n.view.Self.ID,
		From: n.view.Self.Incarnation, To: to.Incarnation}
	contain.Send(n.system, actor.NewPID(to.Address, newsName),
		wire.Seal(h, wire.SingletonNews, payload))
}

// onEnvelope accepts the news of members of the view that address this incarnation.
func (n *news) onEnvelope(env *pb.Envelope) {
	if n.view == nil || n.view.Removed {
		return
	}
	h, manifest, payload, err := wire.Open(env, n.view.Cluster)
	if err != nil || manifest != wire.SingletonNews {
		return
	}
	p := n.peers[h.Member]
	if p == nil || p.member.Incarnation != h.From || h.To != 0 && h.To != n.view.Self.Incarnation {
		return
	}
	var m pb.SingletonNews
	if proto.Unmarshal(payload, &m) == nil {
		n.hear(p, &m)
	}
}

func (n *news) hear(p *teller, m *pb.SingletonNews) {
	if m.Whole {
		clear(p.words)
	}
	for _, w := range m.Words {
		if len(w.GetName()) <= maxName && (p.words[w.Name] != nil || len(p.words) < maxSingletons) {
			p.words[w.Name] = w
			n.pass(p, w.Name)
		}
	}
	switch {
	case m.Ask:
		n.sendWhole(p.member)
	case m.Whole, len(m.Words) > 0 && m.Version == p.version+1:
		p.version = m.Version
	case len(m.Words) > 0:
	case m.Version != p.version || int(m.Count) != len(p.words):
		n.post(p.member, &pb.SingletonNews{Ask: true})
	default:
		n.refresh(p)
	}
}

// refresh passes on the announcements of a member that have not changed. A member that has been
// listed for a while and announces others runs none of the remaining singletons.
func (n *news) refresh(p *teller) {
	due := n.ticks%refreshEvery == 0
	for name, w := range p.words {
		if w.Token != 0 || due {
			n.pass(p, name)
		}
	}
	if !due || n.ticks < p.listed+refreshEvery {
		return
	}
	for name, l := range n.bindings {
		if p.words[name] == nil {
			n.deliver(l, &said{from: p.member, word: &pb.SingletonWord{Name: name, Abstains: true}})
		}
	}
}

// pass passes an announcement on to the actors here.
func (n *news) pass(p *teller, name string) {
	w, l := p.words[name], n.bindings[name]
	if w == nil || l == nil {
		return
	}
	s := &said{p.member, w, w.Settings != l.cfg.settings()}
	if s.differs && l.differs.CompareAndSwap(nil, p) {
		n.system.Logger().Error("a member has another Role or LeaseName of the singleton",
			slog.String("singleton", name), slog.String("member", p.member.Address))
	}
	n.deliver(l, s)
}

func (n *news) deliver(l *binding, s *said) {
	contain.Send(n.system, l.proxy, s)
	if l.session != nil {
		contain.Send(n.system, actor.NewPID(local, l.cfg.managerName()), s)
	}
}

// check reports a member with other settings of the singleton.
func (l *binding) check() error {
	if p := l.differs.Load(); p != nil {
		return fmt.Errorf("singleton %q: member %s has another Role or LeaseName", l.cfg.Name,
			p.member.ID)
	}
	return nil
}

// settings returns a hash of the settings that must be equal at all members: of different ones, two
// members may each have an instance.
func (c Config) settings() uint64 {
	h := fnv.New64a()
	for _, s := range []string{c.Role, c.LeaseName} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

package guard

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/membership"
)

// Config configures the guard of one member. The zero value guards a member without TLS or secret.
type Config struct {
	// Advertised is the address at which others reach this member; "" means the address it listens
	// on.
	Advertised string
	// Files, if set, enables TLS.
	Files *Files
	// Secret, if set, is the file with the secret of the cluster.
	Secret string
	// Public names the actors that processes outside the cluster may reach.
	Public []string
	// MaxEnvelopes bounds a batch if it is above the default.
	MaxEnvelopes int
	// MaxRate bounds the messages of one peer a second, where each KiB counts as one more; 0 means
	// no bound.
	MaxRate int
	// Settle is how long messages of a process that has just appeared wait for it to be listed, if
	// only members may send them: members list a new member at different times. 0: not at all.
	Settle time.Duration
	// Silence bounds TLS and the start of HTTP/2, and the wait for the first message of a stream.
	// Default 5s.
	Silence time.Duration
}

// Guard is the guard of one member.
type Guard struct {
	cfg     Config
	process *Process
	keeper  *keeper  // nil: no TLS
	secret  *secret  // nil: no secret
	conns   *conns   // connections opened by other processes
	opened  opened   // streams opened by this member
	callers *callers // calls that verify the addresses of peers
	stall   time.Duration

	paces     paces
	strangers strangers

	dialOptions atomic.Pointer[[]grpc.DialOption] // for calls to other members
}

// New returns a guard, or an error if its files cannot be used.
func New(cfg Config, p *Process) (*Guard, error) {
	if cfg.Silence == 0 {
		cfg.Silence = maxSilence
	}
	g := &Guard{cfg: cfg, process: p, stall: maxStall, conns: newConns(p.knows, p.refuseConn),
		opened: opened{to: map[nonce]string{}}, paces: paces{rate: cfg.MaxRate,
			all: map[string]*pace{}}}
	g.callers = &callers{guard: g, calls: map[string]*call{}}
	p.guard.Store(g)
	if cfg.Files != nil {
		k, err := newKeeper(*cfg.Files, p)
		if err != nil {
			return nil, err
		}
		g.keeper = k
	}
	if cfg.Secret != "" {
		s, err := newSecret(cfg.Secret, p)
		if err != nil {
			return nil, fmt.Errorf("SecretFile: %w", err)
		}
		g.secret = s
	}
	return g, nil
}

// ServerOptions returns the options for the gRPC server that Proto.Actor creates.
func (g *Guard) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(&serverCredentials{TransportCredentials: g.credentials(), conns: g.conns,
			silence: g.cfg.Silence}),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.ForceServerCodecV2(codec{}),
		grpc.ChainStreamInterceptor(g.accept),
		grpc.ChainUnaryInterceptor(g.refuseUnary),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return unimplemented }),
		grpc.ConnectionTimeout(g.cfg.Silence),
	}
}

// DialOptions returns the options for connections to other members.
func (g *Guard) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(g.credentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithChainStreamInterceptor(g.open),
	}
}

// CallWith sets the options with which the guard calls other members: all those of the remoting.
func (g *Guard) CallWith(options []grpc.DialOption) { g.dialOptions.Store(&options) }

// Check returns an error if the certificate of this member is not valid for its own address.
// Without TLS it returns nil.
func (g *Guard) Check(address string) error {
	if g.keeper == nil {
		return nil
	}
	return g.keeper.check(address)
}

func (g *Guard) credentials() credentials.TransportCredentials {
	if g.keeper == nil {
		return insecure.NewCredentials()
	}
	return &tlsCredentials{g.keeper}
}

var unimplemented = status.Error(codes.Unimplemented, "concord: not implemented")

// refuseUnary rejects every unary call: Proto.Actor panics in all of them.
func (g *Guard) refuseUnary(context.Context, any, *grpc.UnaryServerInfo,
	grpc.UnaryHandler) (any, error) {
	g.process.refuse(badCall, "remoting call", "not implemented")
	return nil, unimplemented
}

// Process is the state shared by the guards of one process: a member has one guard in each of its
// incarnations, and gRPC does not know about actor systems.
type Process struct {
	counts [numberOfReasons]atomic.Uint64
	lines  [numberOfReasons]bugs.Doubling
	log    atomic.Pointer[slog.Logger]
	member atomic.Pointer[member]
	guard  atomic.Pointer[Guard] // of the present incarnation
}

// Check returns an error if the certificate of the present incarnation is not valid for its own
// address.
func (p *Process) Check(address string) error {
	if g := p.guard.Load(); g != nil {
		return g.Check(address)
	}
	return nil
}

// member is the current incarnation of the member.
type member struct {
	cluster string
	members interface {
		View() *membership.View
		Lost() []string
	}
	lives func(id string) bool   // whether an actor exists
	runs  func(kind string) bool // whether virtual actors of a kind run here
}

// Bind sets the member that runs in this process. Before Bind, the guard knows no other members.
// It also makes the names that Proto.Actor gives to futures and to actors without a name begin at
// a random number: a process that restarts at the same address would use those of its predecessor
// again, and take the answers to its questions.
func (p *Process) Bind(system *actor.ActorSystem, name string) {
	p.log.Store(system.Logger())
	atomic.AddUint64(&system.ProcessRegistry.SequenceID, rand.Uint64()>>1)
	system.Extensions.Register(attached{p.guard.Load()})
	p.member.Store(&member{name, membership.Attach(system), func(id string) bool {
		_, ok := system.ProcessRegistry.GetLocal(id)
		return ok
	}, func(kind string) bool {
		_, ok := cluster.GetCluster(system).TryGetClusterKind(kind)
		return ok
	}})
}

// runs reports whether virtual actors of a kind run at this member, or true if that is not known.
func (p *Process) runs(kind string) bool {
	m := p.member.Load()
	if m == nil {
		return kind != ""
	}
	return m.runs(kind)
}

// cluster returns the name of the cluster, or "" before Bind.
func (p *Process) cluster() string {
	if m := p.member.Load(); m != nil {
		return m.cluster
	}
	return ""
}

// view returns the current view of the members, or nil if there is none.
func (p *Process) view() *membership.View {
	if m := p.member.Load(); m != nil {
		return m.members.View()
	}
	return nil
}

// reason is the reason for a rejection. Its name is that of a counter.
type reason int

const (
	badCall    reason = iota // a call that Proto.Actor does not implement
	badStream                // a stream that does not begin or continue as a remoting stream
	badBatch                 // a batch that would crash Proto.Actor
	badMessage               // a message of an unknown type, or one that would stop an actor
	tooMuch                  // a bound is exceeded
	unproven                 // the peer is not what it claims to be
	forged                   // a message that speaks for another member
	unlisted                 // a message of a process that is not listed, or not listed yet
	relayed                  // a message for another address
	badSeal                  // a message without the secret, or replayed
	internal                 // a panic
	numberOfReasons
)

var reasonNames = [numberOfReasons]string{
	"call", "stream", "batch", "message", "bound", "unproven", "forged", "unlisted",
	"relayed", "seal", "panic",
}

// Refusals returns the number of rejections by reason. The caller owns the map.
func (p *Process) Refusals() map[string]uint64 {
	out := make(map[string]uint64, numberOfReasons)
	for r := range numberOfReasons {
		out[reasonNames[r]] = p.counts[r].Load()
	}
	return out
}

// refuse counts a rejection, and logs some: see bugs.Doubling. why must not contain unbounded data
// from a peer.
func (p *Process) refuse(r reason, what string, why any) {
	level := slog.LevelWarn
	if r == unlisted {
		level = slog.LevelInfo // members that start see each other at different times
	}
	p.refuseAt(level, r, what, why)
}

// refuseAt is refuse with the level of the log.
func (p *Process) refuseAt(level slog.Level, r reason, what string, why any) {
	p.counts[r].Add(1)
	n, due := p.lines[r].Due(time.Now())
	if !due {
		return
	}
	p.logger().Log(context.Background(), level, "refused by the guard", slog.String("what", what),
		slog.String("reason", fmt.Sprintf("%.512s", fmt.Sprint(why))),
		slog.String("counter", reasonNames[r]), slog.Uint64("refused", n))
}

func (p *Process) refuseConn(c *conn, why error) {
	p.refuse(tooMuch, "connection from "+c.RemoteAddr().String(), why)
}

func (p *Process) logger() *slog.Logger {
	if log := p.log.Load(); log != nil {
		return log
	}
	return slog.Default()
}

// looked limits how often files are checked for changes.
type looked struct {
	mu sync.Mutex
	at time.Time
}

// lookEvery is the interval between two checks of a file.
const lookEvery = time.Second

// dueLocked reports whether it is time for another check. mu must be held.
func (l *looked) dueLocked(now time.Time) bool {
	if now.Sub(l.at) < lookEvery {
		return false
	}
	l.at = now
	return true
}

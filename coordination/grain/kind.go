package grain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/contain"
)

// Config is the configuration of a kind of grains. Zero fields take their defaults.
type Config struct {
	// Buffer is the number of messages that an activation keeps while it has no lease. Default 100,
	// at most 1,000,000.
	Buffer int `yaml:"buffer"`
	// Prefix begins the lease name of each grain, before its kind, a slash and its identity.
	// Clusters that share a store must use different prefixes. Default "grain/", at most 128 bytes
	// of UTF-8.
	Prefix string `yaml:"prefix"`
}

const (
	defaultBuffer = 100
	maxBuffer     = 1_000_000
	maxPrefix     = 128
)

func (c Config) withDefaults() Config {
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	if c.Prefix == "" {
		c.Prefix = "grain/"
	}
	return c
}

// Validate reports the first problem. The error is coordination.ErrInvalid.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Buffer < 1 || c.Buffer > maxBuffer:
		return fmt.Errorf("%w: grain: Buffer (buffer) is %d, it must be from 1 to %d",
			coordination.ErrInvalid, c.Buffer, maxBuffer)
	case len(c.Prefix) > maxPrefix || !utf8.ValidString(c.Prefix):
		return fmt.Errorf("%w: grain: Prefix (prefix) %.80q has %d bytes, it must be UTF-8 of at most %d",
			coordination.ErrInvalid, c.Prefix, len(c.Prefix), maxPrefix)
	}
	return nil
}

// LeaseName returns the name of a grain's lease. A name that would be longer than
// leasestore.MaxName, or is not UTF-8, contains a hash of kind and identity instead of them.
func (c Config) LeaseName(id *cluster.ClusterIdentity) string {
	prefix := c.withDefaults().Prefix
	name := prefix + id.GetKind() + "/" + id.GetIdentity()
	if len(name) <= leasestore.MaxName && utf8.ValidString(name) {
		return name
	}
	hash := sha256.Sum256([]byte(id.GetKind() + "/" + id.GetIdentity()))
	return prefix + "#" + hex.EncodeToString(hash[:])
}

// NewKind returns a kind of virtual actors, each of which works only under its lease. produce makes
// the worker for one tenure; coordination.Gated describes how it is called. The session must
// outlive the cluster.
func NewKind(kind string, session *coordination.Session, cfg Config,
	produce func(*cluster.ClusterIdentity, coordination.Tenure) actor.Actor) (*cluster.Kind,
	error) {
	if session == nil || produce == nil {
		return nil, fmt.Errorf(
			"%w: grain: kind %q needs a session and a function that produces workers",
			coordination.ErrInvalid, kind)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return cluster.NewKind(kind, actor.PropsFromProducer(func() actor.Actor {
		return &activation{session: session, cfg: cfg, produce: produce}
	})), nil
}

// activation is the virtual actor that Proto.Actor sees. Its child, a gated actor, does the work.
type activation struct {
	session *coordination.Session
	cfg     Config
	produce func(*cluster.ClusterIdentity, coordination.Tenure) actor.Actor
	gated   *actor.PID
}

// Receive implements actor.Actor. ClusterInit arrives right after Started, before any other
// message.
func (a *activation) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		if a.gated != nil {
			return // a user sent another ClusterInit
		}
		id := m.Identity
		a.gated = ctx.Spawn(coordination.Gated(a.session.Lease(a.cfg.LeaseName(id)), a.cfg.Buffer,
			func(t coordination.Tenure) actor.Actor { return a.produce(id, t) }))
	case *actor.Terminated:
		if a.gated == nil || !m.Who.Equal(a.gated) {
			return
		}
		if _, there := ctx.ActorSystem().ProcessRegistry.GetLocal(a.gated.Id); !there {
			ctx.Stop(ctx.Self())
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		contain.Forward(ctx, a.gated)
	}
}

package sharding

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/sharding/internal/core"
)

// Config configures a type of entities. Unset fields take their defaults. All members must use the
// same values.
type Config struct {
	// Type is the name of the type, unique in the cluster. It is part of actor names, leases and
	// keys. Required, at most 40 bytes: letters, digits and any of -_.
	Type string `yaml:"type"`
	// Role limits the hosts to members with this role, of those that call New. Default: every
	// member that calls New hosts.
	Role string `yaml:"role"`
	// Shards is the number of shards that the entities are divided into, from 1 to 4096. It is
	// fixed as long as any member of the type runs: a member with a different number does not
	// start. With Remember it may differ after all members have stopped, but not with
	// RememberStore, which keeps ids by shard. An entity then has the tokens of another lease,
	// which may be lower than those that targets of its effects have recorded. A shard moves as a
	// whole, so plan for at most about 2,000 entities per shard, and ten or more shards per
	// member. Default 256.
	Shards int `yaml:"shards"`
	// MinMembers is how many members with Role must be seen before shards are assigned for the
	// first time; see singleton.Config. Set it to the number of processes that start together.
	// Default 0: only Settle applies.
	MinMembers int `yaml:"min-members"`
	// Settle is how long a new coordinator collects reports before it assigns shards, unless all
	// members have reported sooner. It is also how long the first member of a cluster waits for
	// others. Default 2s.
	Settle time.Duration `yaml:"settle"`
	// Idle is the time without messages from a region after which an entity is passivated. Default
	// 0: never.
	Idle time.Duration `yaml:"idle"`
	// Limit is how many entities may run on this member. It is divided evenly among the shards on
	// the member, each of which may run at least one entity. When a shard exceeds its part, the
	// entity whose last message is the oldest is passivated. Entities that are stopping do not
	// count, and a shard keeps its former part for up to a second after other shards have arrived.
	// Default 0: no limit.
	Limit int `yaml:"limit"`
	// Remember keeps entities running once they have received a message. Wherever their shard
	// moves, they are started without waiting for a message, and an entity that stops itself or
	// fails is restarted after a pause, until it calls Forget. The first message to an entity waits
	// until a majority of the replicas has stored its id, which costs a round trip, and so does the
	// start of a shard. Ids take memory on every member, see RememberStore; for ids that outlive
	// all members, see RememberedKeys. Idle and Limit must be 0. Default false.
	Remember bool `yaml:"remember"`
	// RecoverRate is how many remembered entities this member starts in a second without messages
	// when it gets their shards, from 1 to 1,000,000. They start in turns of a tenth of a second,
	// of all shards together; a message starts its entity at once. It requires Remember. Default 0:
	// all entities of a shard start at once.
	RecoverRate int `yaml:"recover-rate"`
	// RememberStore stores the ids of remembered entities, for more of them than the memory of a
	// member holds. It requires Remember. Default: they are replicated data.
	RememberStore RememberStore `yaml:"-"`
	// HandOff bounds how long an entity may take to stop. After that it is stopped after the
	// message that it is handling. If its shard moves, the messages that wait for it become dead
	// letters; otherwise they start it again. Raising it lets more queued work finish, and makes
	// senders wait longer. Default 10s.
	HandOff time.Duration `yaml:"hand-off"`
	// OrphanAfter is how long a region that does not hear a coordinator keeps its shards before it
	// checks whether it is cut off. Default 5s.
	OrphanAfter time.Duration `yaml:"orphan-after"`
	// MaxMoves is how many shards may move at the same time for a better balance; -1 disables such
	// moves. Default a tenth of Shards, at least 1 and at most 50.
	MaxMoves int `yaml:"max-moves"`
	// Rendezvous chooses the home of a shard by a hash of its number and the addresses of the
	// members, rather than by equal counts. Shards with the same number of several types with equal
	// Shards are then on the same member, and a member that joins or leaves moves only the shards
	// that it gets or had. The numbers of shards per member then differ by some tens of percent.
	// Default false.
	Rendezvous bool `yaml:"rendezvous"`
	// Spread is by how many shards the members with the most and the fewest may differ before
	// shards move for a better balance, from 1 to Shards. Raising it causes fewer moves. Default 1.
	Spread int `yaml:"spread"`
	// External places shards on the members that Region.Allocate asks for; all other shards are
	// assigned as usual. Default false.
	External bool `yaml:"external"`
	// Strategy chooses the homes of shards: it returns members, by id or address, for some or all
	// shards of the layout. The coordinator calls it when the members that can host change, and
	// every five seconds. A shard for which it names another member moves there, within MaxMoves
	// and StableAfter. Shards that it does not name stay where they are, and those without a home,
	// or whose home is gone, are assigned evenly. It runs in its own goroutine, one call at a time,
	// and may call methods of the Region. Shards without a home wait one second for its answer. If
	// it panics, ends its goroutine, does not return, or names members that cannot host or shards
	// that do not exist, the error is logged and those choices are ignored. Set it on all members,
	// since any of them may become the coordinator. Default: none.
	Strategy func(Layout) map[int]string `yaml:"-"`
	// StableAfter is how long the set of members must have been unchanged before shards move for a
	// better balance. While members announce different versions of the application (see
	// node.Config.AppVersion), none do, nor by Strategy. Default 10s.
	StableAfter time.Duration `yaml:"stable-after"`
	// Buffer is how many messages this member holds while it does not know a host for their shards,
	// or while the host has 2 MiB that it has not taken; one shard may use an eighth of it. Further
	// messages are refused with ErrBufferFull, or become dead letters if no caller waits for an
	// error; Stats.Refused counts them. Default 100,000, at most 10,000,000.
	Buffer int `yaml:"buffer"`
	// BufferBytes bounds the total size of the messages of Buffer, encoded as protobuf. One shard
	// may use an eighth, so no larger message can wait. Default 64 MiB.
	//
	// The messages of Deliver that are not confirmed are counted separately; Buffer and BufferBytes
	// bound them too.
	BufferBytes int `yaml:"buffer-bytes"`
	// Stash is how many messages may wait for one entity that is being stopped, could not be
	// created or is not remembered yet. Buffer messages may wait for all such entities on this
	// member, and an eighth of that for those of one shard. Further messages are refused: they
	// become dead letters, or Ask returns ErrUndelivered. Default 1000.
	Stash int `yaml:"stash"`
	// LeasePrefix is the prefix of the names of the leases, followed by the number of the shard, or
	// by "coordinator". It must not end with a digit: types
	// with different prefixes then never share a lease. Default "shard-", Type and "-". Clusters
	// that share a store must use different prefixes.
	LeasePrefix string `yaml:"lease-prefix"`
	// RenewEachLease allows more than 64 shards with a lease store without session records, where
	// each shard's lease is renewed separately. Default false: New rejects that.
	RenewEachLease bool `yaml:"renew-each-lease"`
	// StopMessage is sent to an entity that must stop; the entity then stops itself, within
	// HandOff. Later messages wait meanwhile. Default: the entity is stopped once it has handled
	// the messages before the stop.
	StopMessage any `yaml:"-"`
	// Meters receives the metrics, named concord.sharding.*; see Status and Stats for their
	// meaning. Default otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`

	numbered bool // worker mode: an entity's id is the number of its shard, and each worker runs
}

func (c Config) withDefaults() Config {
	set(&c.Shards, 256)
	set(&c.Settle, 2*time.Second)
	set(&c.HandOff, 10*time.Second)
	set(&c.OrphanAfter, 5*time.Second)
	set(&c.MaxMoves, min(50, max(1, c.Shards/10)))
	set(&c.StableAfter, 10*time.Second)
	set(&c.Spread, 1)
	set(&c.Buffer, 100_000)
	set(&c.BufferBytes, 64<<20)
	set(&c.Stash, 1000)
	set(&c.LeasePrefix, "shard-"+c.Type+"-")
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Bounds of Config.
const (
	maxShards      = 4096 // so that a table fits into one message
	maxUnshared    = 64   // with a lease store that renews each lease separately
	maxMembers     = 10_000
	maxLeasePrefix = 200
)

func init() { settings.Checked(Config.validate) }

// validate returns all problems at once; each matches ErrInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	switch {
	case c.Type == "" || len(c.Type) > 40:
		bad("Type has %d bytes, it must have from 1 to 40", len(c.Type))
	case strings.ContainsFunc(c.Type, unfit):
		bad("Type %q must consist of letters, digits and any of -_.", c.Type)
	}
	for _, n := range []struct {
		name             string
		value, low, high int
	}{
		{"Shards", c.Shards, 1, maxShards},
		{"MinMembers", c.MinMembers, 0, maxMembers},
		{"MaxMoves", c.MaxMoves, -1, maxShards},
		{"Spread", c.Spread, 1, max(1, c.Shards)},
		{"Limit", c.Limit, 0, 1_000_000_000},
		{"Buffer", c.Buffer, 1, 10_000_000},
		{"BufferBytes", c.BufferBytes, 1 << 10, min(64<<30, math.MaxInt)},
		{"Stash", c.Stash, 1, 1_000_000},
		{"RecoverRate", c.RecoverRate, 0, 1_000_000},
		{"the length of LeasePrefix", len(c.LeasePrefix), 1, maxLeasePrefix},
	} {
		if n.value < n.low || n.value > n.high {
			bad("%s is %d, it must be from %d to %d", n.name, n.value, n.low, n.high)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Settle", c.Settle}, {"HandOff", c.HandOff}, {"OrphanAfter", c.OrphanAfter},
		{"StableAfter", c.StableAfter}} {
		if d.value < time.Millisecond || d.value > time.Hour {
			bad("%s is %v, it must be from 1ms to 1h", d.name, d.value)
		}
	}
	if err := leases.Held.CheckName(c.LeasePrefix + "coordinator"); err != nil &&
		len(c.LeasePrefix) <= maxLeasePrefix {
		bad("LeasePrefix: %w", err)
	}
	if n := len(c.LeasePrefix); n > 0 && isDigit(rune(c.LeasePrefix[n-1])) {
		bad("LeasePrefix %.80q ends with a digit, another type may have the same leases",
			c.LeasePrefix)
	}
	if c.Idle != 0 && (c.Idle < 10*time.Millisecond || c.Idle > 1000*time.Hour) {
		bad("Idle is %v, it must be 0 or from 10ms to 1000h", c.Idle)
	}
	if c.Strategy != nil && (c.External || c.Rendezvous) {
		bad("Strategy chooses homes, so External and Rendezvous must not be set")
	}
	if c.Remember && (c.Idle != 0 || c.Limit != 0) {
		bad("Remember keeps entities running, so Idle (%v) and Limit (%d) must be 0", c.Idle,
			c.Limit)
	}
	if !c.Remember && (c.RecoverRate != 0 || c.RememberStore != nil) {
		bad("RecoverRate (%d) and RememberStore (%T) require Remember", c.RecoverRate,
			c.RememberStore)
	}
	return errors.Join(errs...)
}

func unfit(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || isDigit(r) ||
		strings.ContainsRune("-_.", r))
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func (c Config) controlName() string     { return "concord-sharding-" + c.Type }
func (c Config) ingressName() string     { return "concord-region-" + c.Type }
func (c Config) receiverName() string    { return "concord-inlet-" + c.Type }
func (c Config) coordinatorName() string { return "shard-coordinator-" + c.Type }

// settings returns, as text, the settings on which all members of the type must agree.
func (c Config) settings() string {
	by := "fnv1a64"
	if c.numbered {
		by = "number"
	}
	text := fmt.Sprintf("%d shards by %s, role %q, leases %q", c.Shards, by, c.Role, c.LeasePrefix)
	if c.Remember {
		text += ", remembered"
	}
	if c.RememberStore != nil {
		text += " in a store"
	}
	if c.Rendezvous {
		text += ", by rendezvous"
	}
	if c.External {
		text += ", allocated by users"
	}
	if c.Strategy != nil {
		text += ", by a strategy"
	}
	return text
}

const (
	repeatEvery  = 300 * time.Millisecond
	flushTimeout = time.Second
	beat         = 250 * time.Millisecond

	consultEvery = 5 * time.Second
	answerWithin = time.Second

	resendAfter  = time.Second
	resendAtMost = 10 * time.Second
	rememberLast = 1024
	credit       = 2 << 20
)

func (c Config) core() core.Config {
	return core.Config{
		Type: c.Type, Shards: c.Shards, Repeat: repeatEvery, FlushTimeout: flushTimeout,
		HandOff:  c.HandOff,
		Patience: c.HandOff + flushTimeout, Retry: time.Second, Orphan: c.OrphanAfter,
		Beat: beat, Settle: c.Settle, Fit: 10 * beat, Moves: max(0, c.MaxMoves),
		Stable: c.StableAfter,
		Spread: c.Spread, Consult: c.Strategy != nil, Again: consultEvery, Answer: answerWithin,
		Resend: resendAfter, MaxResend: resendAtMost, Handled: rememberLast,
		Rendezvous: c.Rendezvous, Buffer: c.Buffer, BufferBytes: c.BufferBytes,
	}
}

func (c Config) slot(limit int, pace core.Pace, room core.Room) core.SlotConfig {
	return core.SlotConfig{
		HandOff: c.HandOff, Idle: c.Idle, Limit: limit,
		Remember: c.Remember || c.numbered, Keep: c.numbered, Pace: pace, Room: room,
		Stash:   c.Stash,
		BackOff: 100 * time.Millisecond, MaxBackOff: 10 * time.Second, Failures: 8,
	}
}

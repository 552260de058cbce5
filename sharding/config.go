package sharding

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/sharding/internal/core"
)

// Config of a type of entities. Fields that are not set take their defaults. All members use the same.
type Config struct {
	// Type tells the types of a cluster apart. It is part of actor names, leases and keys. Required, at most 40 bytes:
	// letters, digits and any of -_.
	Type string `yaml:"type"`
	// Role limits the hosts to members with this role; every one of them must call New. Default: every member hosts.
	Role string `yaml:"role"`
	// Shards is how many shards the entities are divided into, from 1 to 4096. It is fixed as long as any member of the
	// type runs: a member with another number does not start. A shard moves as a whole, so have at most some 2,000
	// entities in each, and ten or more shards per member. Default 256.
	Shards int `yaml:"shards"`
	// MinMembers is how many members with Role must be seen before shards are assigned for the first time; see
	// singleton.Config. Set it to the number of processes that start together. Default 0: Settle decides.
	MinMembers int `yaml:"min-members"`
	// Settle is how long a new coordinator listens before it assigns, unless all members have reported sooner; and how
	// long the first of a cluster waits for others. Default 2s.
	Settle time.Duration `yaml:"settle"`
	// Idle is after how long without a message from a region an entity is passivated. Default 0: never.
	Idle time.Duration `yaml:"idle"`
	// Limit is how many entities may run at this member, divided evenly among the shards that it has, each of which may run
	// one at least. Beyond its part an entity of the shard is passivated, by Eviction; those that are ending come on
	// top, and so does what a shard had that was alone until a second ago. Default 0: any number.
	Limit int `yaml:"limit"`
	// Eviction says which entity is passivated above Limit: LRU, SLRU or LFU. The latter two need Limit, and Idle must be 0.
	// Default LRU.
	Eviction Eviction `yaml:"eviction"`
	// Remember keeps entities running once they were spoken to: wherever their shard goes, they are started before there is
	// a message, and one that stops by itself or fails is started again after a pause; until it calls Forget. The first
	// message to an entity waits until a majority of the replicas has its id, so it costs a round trip; so does the start of
	// a shard. All of a shard start at once. Ids take memory at every member. Idle and Limit must be 0. Default false.
	Remember bool `yaml:"remember"`
	// HandOff bounds the time in which the entities of a shard that is to move end; then they are stopped after the
	// message that each is handling, and what waits for them is lost. Raising it lets more queued work finish, and lets
	// others wait longer. Default 10s.
	HandOff time.Duration `yaml:"hand-off"`
	// OrphanAfter is how long a region that hears no coordinator keeps its shards before it looks whether it is cut off.
	// Default 5s.
	OrphanAfter time.Duration `yaml:"orphan-after"`
	// MaxMoves is how many shards may be on their way at one time for a better balance; -1: none is moved for that.
	// Default a tenth of Shards, at least 1 and at most 50.
	MaxMoves int `yaml:"max-moves"`
	// Rendezvous chooses the home of a shard by a hash of its number and the addresses of members, and not so that all have
	// equally many: shards of the same number of several types, with equal Shards, are at the same member, and one that comes
	// or goes moves only those that it gets or had. Members then have numbers of shards that differ by some tens of percent.
	// Default false.
	Rendezvous bool `yaml:"rendezvous"`
	// Spread is by how many shards the member with most and the one with fewest may differ before shards move for a better
	// balance, from 1 to Shards. Raising it moves less. Default 1.
	Spread int `yaml:"spread"`
	// External has shards be where Region.Allocate asks for; all others are assigned as without. Default false.
	External bool `yaml:"external"`
	// Strategy chooses the homes of shards: it returns members, by id or address, for some shards of the layout. The
	// coordinator asks it when other members can host, and every five seconds; a member that it names for a shard that is
	// elsewhere gets it, within MaxMoves and StableAfter. Shards that it does not name stay where they are; those that have
	// no home, or one that is gone, are assigned evenly. It runs in a goroutine of its own, one call at a time, and may call
	// methods of the Region. Shards without a home wait one second for its answer. If it panics, ends its goroutine, does
	// not return, or names members that cannot host or shards that do not exist, that is logged, and as if it had not named
	// those. Set it at all members, as the coordinator may be at each. Default: none.
	Strategy func(Layout) map[int]string `yaml:"-"`
	// StableAfter is how long the members must have been the same before shards move for a better balance. Default 10s.
	StableAfter time.Duration `yaml:"stable-after"`
	// Buffer is how many messages this member keeps while their shards have no host that it knows; one shard may have an
	// eighth. Those that do not fit are refused, the newest first: they go to the dead letters and are counted. Default
	// 100,000, at most 10,000,000.
	Buffer int `yaml:"buffer"`
	// BufferBytes bounds their size, as protobuf messages; each of another kind counts for 256 bytes. Default 64 MiB.
	BufferBytes int `yaml:"buffer-bytes"`
	// Stash is how many messages wait for one entity that is being stopped or could not be made. Default 1000.
	Stash int `yaml:"stash"`
	// LeasePrefix begins the names of the leases of shards; the coordinator's is that of a singleton. Default "shard-",
	// Type and "-". Clusters that share a store must not share it.
	LeasePrefix string `yaml:"lease-prefix"`
	// RenewEachLease allows more than 64 shards with a lease store that keeps no session records, where each shard's lease
	// is renewed by itself. Default false: New refuses that.
	RenewEachLease bool `yaml:"renew-each-lease"`
	// Extractor returns the id of the entity that a message is for, or an empty string if it is for none. With it, RefFor
	// finds the entity of a message, and Region.PID takes messages without an Envelope. It may be called by several
	// goroutines at one time, and its caller waits: it must return at once. If it panics, or takes longer than a second,
	// the message is refused. A call takes some microseconds more than one of Ref. Default: none.
	Extractor func(message any) (id string) `yaml:"-"`
	// StopMessage is sent to an entity that is to end; it then stops itself, within HandOff. Default: the entity is
	// stopped when it has handled what came before.
	StopMessage any `yaml:"-"`
	// Meters is where the metrics go, named concord.sharding.*; see Status and Stats for what they count. Default
	// otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`

	numbered bool // the id of an entity is the number of its shard, and each runs
}

// Eviction is which entity is passivated above Config.Limit.
type Eviction string

// Evictions.
const (
	// LRU: the one that was spoken to longest ago.
	LRU Eviction = "lru"
	// SLRU keeps entities that were spoken to again apart, up to four fifths of the limit, so that many that are spoken to
	// once do not end them.
	SLRU Eviction = "slru"
	// LFU lets an entity stay that was spoken to more often than the one that would end for it, also before it was last
	// started. It takes eight bytes more for each entity that may run.
	LFU Eviction = "lfu"
)

var policies = map[Eviction]core.Policy{LRU: core.LRU, SLRU: core.SLRU, LFU: core.LFU}

func (c Config) withDefaults() Config {
	set(&c.Shards, 256)
	set(&c.Settle, 2*time.Second)
	set(&c.HandOff, 10*time.Second)
	set(&c.OrphanAfter, 5*time.Second)
	set(&c.MaxMoves, min(50, max(1, c.Shards/10)))
	set(&c.StableAfter, 10*time.Second)
	set(&c.Spread, 1)
	set(&c.Eviction, LRU)
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
	maxUnshared    = 64   // with a lease store that renews each lease by itself
	maxMembers     = 10_000
	maxLeasePrefix = 200
)

// Validate reports every problem at once. The errors are ErrInvalid.
func (c Config) Validate() error {
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
		{"BufferBytes", c.BufferBytes, 1 << 10, 64 << 30},
		{"Stash", c.Stash, 1, 1_000_000},
		{"the length of LeasePrefix", len(c.LeasePrefix), 1, maxLeasePrefix},
	} {
		if n.value < n.low || n.value > n.high {
			bad("%s is %d, it must be from %d to %d", n.name, n.value, n.low, n.high)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Settle", c.Settle}, {"HandOff", c.HandOff}, {"OrphanAfter", c.OrphanAfter}, {"StableAfter", c.StableAfter}} {
		if d.value < time.Millisecond || d.value > time.Hour {
			bad("%s is %v, it must be from 1ms to 1h", d.name, d.value)
		}
	}
	if err := coordination.CheckName(c.LeasePrefix + "coordinator"); err != nil && len(c.LeasePrefix) <= maxLeasePrefix {
		bad("LeasePrefix: %w", err)
	}
	if c.Idle != 0 && (c.Idle < 10*time.Millisecond || c.Idle > 1000*time.Hour) {
		bad("Idle is %v, it must be 0 or from 10ms to 1000h", c.Idle)
	}
	switch _, ok := policies[c.Eviction]; {
	case !ok:
		bad("Eviction is %.80q, it must be lru, slru or lfu", c.Eviction)
	case c.Eviction != LRU && (c.Limit == 0 || c.Idle != 0):
		bad("Eviction is %s, so Limit (%d) must be set and Idle (%v) must be 0", c.Eviction, c.Limit, c.Idle)
	}
	if c.Strategy != nil && (c.External || c.Rendezvous) {
		bad("Strategy chooses homes, so External and Rendezvous must not be set")
	}
	if c.Remember && (c.Idle != 0 || c.Limit != 0) {
		bad("Remember keeps entities running, so Idle (%v) and Limit (%d) must be 0", c.Idle, c.Limit)
	}
	return errors.Join(errs...)
}

func unfit(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
}

func (c Config) controlName() string     { return "concord-sharding-" + c.Type }
func (c Config) doorName() string        { return "concord-region-" + c.Type }
func (c Config) coordinatorName() string { return "shard-coordinator-" + c.Type }

// settings is what all members of the type must agree on, as text.
func (c Config) settings() string {
	by := "fnv1a64"
	if c.numbered {
		by = "number"
	}
	text := fmt.Sprintf("%d shards by %s, role %q, leases %q", c.Shards, by, c.Role, c.LeasePrefix)
	if c.Remember {
		text += ", remembered"
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
)

func (c Config) core() core.Config {
	return core.Config{
		Shards: c.Shards, Repeat: repeatEvery, FlushTimeout: flushTimeout, HandOff: c.HandOff,
		Patience: c.HandOff + flushTimeout, Retry: time.Second, Orphan: c.OrphanAfter,
		Beat: beat, Settle: c.Settle, Fit: 10 * beat, Moves: max(0, c.MaxMoves), Stable: c.StableAfter,
		Spread: c.Spread, Consult: c.Strategy != nil, Again: consultEvery, Answer: answerWithin,
		Rendezvous: c.Rendezvous, Buffer: c.Buffer, BufferBytes: c.BufferBytes,
	}
}

func (c Config) slot(limit int) core.SlotConfig {
	return core.SlotConfig{
		Idle: c.Idle, Limit: limit, Policy: policies[c.Eviction], Remember: c.Remember || c.numbered, Keep: c.numbered, Stash: c.Stash,
		BackOff: 100 * time.Millisecond, MaxBackOff: 10 * time.Second, Failures: 8,
	}
}

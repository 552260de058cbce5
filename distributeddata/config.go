package distributeddata

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/settings"
)

// Config configures a replicator. A zero field takes its default. Every member of the cluster that
// has the role must run a replicator with the same Name and MinMembers. In a later incarnation of
// the member in the same process the Config passed to New then applies; the data carries over by
// Name.
type Config struct {
	// Name distinguishes replicators of one member. It has at most 64 bytes. A second replicator
	// of the same name on one actor system is rejected with ErrInvalid. Default "ddata".
	Name string `yaml:"name"`
	// Role limits the replicas to members with this role. Default: all members.
	Role string `yaml:"role"`
	// Member is the name under which majorities count this member. It has at most 256 bytes. A
	// process that starts under the same name takes the place of the previous one. Without a
	// name, a member that comes back at another address is counted as an additional member, and
	// the previous one is counted until it is forgotten. Set it where the platform has stable
	// names, such as those of the pods of a StatefulSet. Two processes that run at the same time
	// must not share a name: the later one wins, and the earlier one is not counted again until
	// the later one has been out of its view for a minute. Default: the address.
	Member string `yaml:"member"`
	// MinMembers is the number of members that must see each other before the first of them count,
	// and the smallest number that a majority is computed from. Default: node.RunConfig.MinMembers,
	// unless Role or Membership is set; -1 for none. While there is none, every operation above
	// Local fails at once with ErrInvalid. With Role set it to two thirds, rounded up, of the
	// largest number of members with that role that may ever run at the same time: with less, two
	// clusters can begin independently. The number of all such members makes majorities static, but
	// none that restarts is ready while one is missing. 1 is for a single process. It should be the
	// same at all members; a member with another value is logged.
	MinMembers int `yaml:"min-members"`
	// Membership, if set, keeps the set of counted members as a record in a store, the same for all
	// members. It is for autoscaled members without stable names, where MinMembers cannot be known.
	// MinMembers is then 1 if it is not set: the first process that finds nobody counted begins the
	// cluster alone, and a process that starts apart from it learns from the record that a cluster
	// exists. The store is used when a member starts, leaves or is forgotten. While the store does
	// not answer, none of these happens, a member that closes remains counted, and a running
	// cluster continues, because reads and writes do not use the store. A restart of all members
	// under their names keeps the count. If members without names all crash at the same time, call
	// Replicator.Forget with Force for each. The last member that closes removes itself, and the
	// data it held in memory is lost. Problems with the record are logged and shown in
	// Status.Trouble. Default: none.
	Membership Membership `yaml:"-"`
	// ForgetAfter is how long a vanished member is counted before a majority agrees to continue
	// without it. Safety does not depend on it, and it has no effect while no more than
	// MinMembers are counted. Choose it longer than partitions and restarts usually last, and
	// shorter than the usual time to a second crash of a member without a stable name. A member
	// that stops in order, and could not come back while another one is missing, waits a moment
	// only. Default 10m; negative: never, see Replicator.Forget.
	ForgetAfter time.Duration `yaml:"forget-after"`
	// Durable lists the durable keys: names, and prefixes followed by a star, such as "cart-*"; "*"
	// stands for all keys. All members must list the same. A member with another list is named in
	// Status.OtherDurable, and until the lists agree neither side accepts changes of durable keys
	// from the other. Durable and volatile keys are replicated separately, each with their own
	// count of majorities and LogBytes of memory. One call of Atomically changes keys of one kind
	// only. In a later incarnation of the member in the same process the list must be that of the
	// first.
	Durable []string `yaml:"durable"`
	// Store keeps the durable keys: a store of package badger or bbolt that belongs to this member
	// alone. The application opens it before New and closes it when the replicator has been closed
	// for good, that is, when node.Run has returned; the replicator never closes it. At the start
	// the whole store is read. Until then, operations on durable keys wait until their timeout and
	// then return ErrLoading. If its rows belong to another Name, Member or cluster, the replicator
	// rejects the store and writes nothing. Set Member too: without it, a member that comes back at
	// another address is another member to the majorities. In a later incarnation of the member in
	// the same process the Store of the first incarnation is used. Required with Durable.
	Store store.Store `yaml:"-"`
	// WriteBehind is how long changes of durable keys may wait before they are written. With 0,
	// an update returns when its change is on the disks of as many members as its level requires,
	// this one included. With more, it returns when that many members have it in memory, and a
	// simultaneous crash of all of them may lose the changes of this time, up to 16 MiB: Flush
	// waits for the disk. At most 1m. Default 0.
	WriteBehind time.Duration `yaml:"write-behind"`
	// Expiry gives entries a time to live, by name or by a prefix followed by a star, such as
	// "session-*". A name takes precedence over a prefix, and a longer prefix over a shorter one.
	// An entry that no member has used for its time to live is deleted everywhere, by one member,
	// within a quarter of that time, twice ClockSkew and a few heartbeats more, provided that
	// members see each other. Uses are Get, by any key and at any level, Update, and Key.In.
	// Snapshot, Changes, Subscribe and Keys are not uses. A use is sent to the other members as
	// one small update, and only if the last known use is older than a quarter of the time to
	// live. See ExpireAfter for the time to live of a single entry. Each time is at least twice
	// ClockSkew and at most a hundred years.
	//
	// Expiry is for caches. An update concurrent with the deletion survives, alone: the entry
	// then holds that update and nothing older. A read concurrent with the deletion, or in
	// another part of a partition, does not keep the entry. A member deletes nothing before it is
	// Ready, nor while it sees half or fewer of the counted members. A member that has been cut
	// off and has not noticed it yet may delete entries that the others use. An existing entry
	// that gets a time to live for the first time counts as used at that moment.
	//
	// All members should have the same times; those with others are logged and named in
	// Status.OtherExpiry. If they differ, an entry expires after the shortest
	// of its times, even while members with a longer time use it, because those report its use
	// less often. Members of versions before this setting cannot read entries with a time to
	// live: set it when all members run this version.
	Expiry map[string]time.Duration `yaml:"expiry"`
	// ClockSkew is the largest expected difference between the wall clocks of two members, from
	// 1ms to 1h. If clocks differ by more, entries may expire too early, or stay too long, by the
	// excess, but an entry never stays longer than its time to live, a quarter of it, and
	// ClockSkew after a member has seen it used. It should be the same at all members. Default
	// 5s.
	ClockSkew time.Duration `yaml:"clock-skew"`
	// CloseOnStoreFailure makes the replicator close itself, as by Close, when the store has
	// failed for good (store.ErrFailed), or its rows cannot be read at the start. It then takes
	// part in nothing, and every operation returns ErrClosed. By default it continues with volatile
	// keys and shows durable keys as they are in memory, but acknowledges no change of them.
	CloseOnStoreFailure bool `yaml:"close-on-store-failure"`
	// HeartbeatInterval is how often each member reports to some others what it has seen. A lost
	// change is noticed within about two heartbeats. Default 1s.
	HeartbeatInterval time.Duration `yaml:"heartbeat-interval"`
	// OperationTimeout bounds operations whose context or message sets no deadline, even while the
	// replicator's goroutine is busy in a function of the application. It also bounds how long they
	// wait for the next incarnation of the member. The same holds for Close. Default 5s.
	OperationTimeout time.Duration `yaml:"operation-timeout"`
	// NotifyInterval is how long changes are collected before subscribers are notified. Default
	// 50ms; negative: not at all.
	NotifyInterval time.Duration `yaml:"notify-interval"`
	// LogBytes is the memory that a replica uses to remember the changes that other members may
	// have missed. A member that missed more is sent the whole state. Default 64 MiB.
	LogBytes int `yaml:"log-bytes"`
	// MaxEntries is the largest number of entries that this member may create. Entries that other
	// members create are accepted beyond it, so that replicas stay equal. Default 1,000,000.
	//
	// For this limit and the next four: what exceeds the limit is rejected with ErrLimit, which
	// names the setting, and nothing is done. Above half of a limit, Status.NearLimits contains
	// its name, and a line is logged once a minute. Each limit is from 1 to 1,000,000,000 and may
	// differ between members.
	MaxEntries int `yaml:"max-entries"`
	// MaxElements is the largest number of elements that a value may have after an update that
	// adds some, counting nested ones: the elements of a map include those of its values. A user-
	// defined type is one element. Default 1,000,000, which is also the limit of package crdt;
	// for more see ShardedMap.
	MaxElements int `yaml:"max-elements"`
	// MaxBytes is the largest size in bytes that a value may have after an update that adds to
	// it: the size of its elements, keys, registers and counters as they are stored, without
	// bookkeeping. Default 67,108,864 (64 MiB). A single element has at most 16 MiB, and a value
	// of package crdt that is larger than 16 MiB cannot be encoded.
	MaxBytes int `yaml:"max-bytes"`
	// MaxSubscriptions is the largest number of subscriptions that actors of this member may
	// have. A subscription beyond it is rejected and logged. Loops over changes do not count.
	// Default 100,000.
	MaxSubscriptions int `yaml:"max-subscriptions"`
	// MaxOperations is the largest number of reads and updates of this member that may wait for
	// other members or for the disk at the same time. Default 100,000.
	MaxOperations int `yaml:"max-operations"`
	// Meters is the provider of the metrics; see Status for their names. Default
	// otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
}

// within returns c with the number of members that the process states for its cluster, if c has
// none. Members without Role have no replica, and are not to be waited for.
func (c Config) within(cluster int) Config {
	if c.Role == "" && c.Membership == nil {
		set(&c.MinMembers, cluster)
	}
	c.MinMembers = max(c.MinMembers, 0)
	return c
}

func (c Config) withDefaults() Config {
	set(&c.Name, "ddata")
	if c.Membership != nil {
		set(&c.MinMembers, 1)
	}
	set(&c.ForgetAfter, 10*time.Minute)
	set(&c.ClockSkew, 5*time.Second)
	set(&c.HeartbeatInterval, time.Second)
	set(&c.OperationTimeout, 5*time.Second)
	set(&c.NotifyInterval, 50*time.Millisecond)
	set(&c.LogBytes, 64<<20)
	set(&c.MaxEntries, 1_000_000)
	set(&c.MaxElements, 1_000_000)
	set(&c.MaxBytes, 64<<20)
	set(&c.MaxSubscriptions, 100_000)
	set(&c.MaxOperations, 100_000)
	return c
}

// maxLimit is the largest of the limits.
const maxLimit = 1_000_000_000

// maxMinMembers is more than any cluster has; a larger number is a mistake.
const maxMinMembers = 10_000

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func init() { settings.Checked(Config.validate) }

// validate reports every problem at once. The errors are ErrInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if len(c.Name) > 64 {
		bad("Name has %d bytes, over the limit of 64", len(c.Name))
	}
	if c.Member != "" {
		if err := quorum.CheckName(c.Member); err != nil {
			bad("Member: %w", err)
		}
	}
	if c.MinMembers < -1 || c.MinMembers > maxMinMembers {
		bad("MinMembers is %d, must be from 1 to %d, or -1 for nothing but Local", c.MinMembers,
			maxMinMembers)
	}
	if _, err := newDurableKeys(c.Durable); err != nil {
		errs = append(errs, err)
	}
	if err := c.wrongExpiry(); err != nil {
		errs = append(errs, err)
	}
	if (len(c.Durable) > 0) != (c.Store != nil) {
		bad("Durable lists %d entries, and Store is %T: set both or none", len(c.Durable), c.Store)
	}
	if c.WriteBehind < 0 || c.WriteBehind > time.Minute || c.WriteBehind > 0 && c.Store == nil {
		bad("WriteBehind is %v, must be from 0 to 1m, and needs Store", c.WriteBehind)
	}
	if c.ForgetAfter > 0 && c.ForgetAfter < c.HeartbeatInterval {
		bad("ForgetAfter is %v, must be at least HeartbeatInterval, %v", c.ForgetAfter,
			c.HeartbeatInterval)
	}
	if c.HeartbeatInterval < 10*time.Millisecond || c.HeartbeatInterval > time.Minute {
		bad("HeartbeatInterval is %v, must be from 10ms to 1m", c.HeartbeatInterval)
	}
	if c.OperationTimeout < time.Millisecond {
		bad("OperationTimeout is %v, must be at least 1ms", c.OperationTimeout)
	}
	if c.LogBytes < 1<<16 {
		bad("LogBytes is %d, must be at least 65536", c.LogBytes)
	}
	for l, n := range c.limits() {
		if *n < 1 || *n > maxLimit {
			bad("%s is %d, must be from 1 to %d", limitNames[l][0], *n, maxLimit)
		}
	}
	return errors.Join(errs...)
}

package distributeddata

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/store"
)

// Config of a replicator. A field that is not set takes its default. Every member of the cluster that
// has the role runs a replicator of the same name with the same MinMembers. In a later life of the same process the
// Config given there counts; what the replicator holds goes along by Name.
type Config struct {
	// Name tells several replicators of one member apart, at most 64 bytes. Two of one name on one actor system
	// are refused with ErrInvalid. Default "ddata".
	Name string `yaml:"name"`
	// Role limits the replicas to members with this role. Default: all members.
	Role string `yaml:"role"`
	// Member is the name under which majorities count this member, at most 256 bytes. A process that starts under
	// it again takes the place of the one before; without, one that comes back at another address is one more
	// member, and the former one counts on until it is forgotten. Set it where the platform has stable names, as
	// of the pods of a StatefulSet; no two processes that run at once may share one: the later one wins, and the
	// earlier one counts no more until the later has been out of its view for a minute. Default: the address.
	Member string `yaml:"member"`
	// MinMembers is how many members must be together before the first of them count, and the least number that
	// majorities are counted in. It has no default: while it is not set, every operation above Local fails at once
	// with ErrInvalid. For a cluster of fixed size set it to that size. For one that is to grow and shrink set it to
	// two thirds, rounded up, of the most members that may ever run at once: with less, two clusters can begin
	// apart. 1 is for a single process. It should be the same at all members; one that has another is logged.
	MinMembers int `yaml:"min-members"`
	// Membership, if set, keeps who is counted in majorities as a record in a store, the same at all members: for
	// members that are autoscaled and have no names, and where MinMembers cannot be known. MinMembers is then 1 if
	// it is not set: the first process that finds nobody counted begins the cluster alone, and one that starts
	// apart from it finds that in the record. The store is asked when a member starts, leaves or is forgotten.
	// While it does not answer, none of that happens, a member that closes is counted on, and a running cluster
	// goes on: reads and writes never ask. A restart of all under their names keeps the count; if members without
	// names all crash at once, use Replicator.Forget with Force for each. The last member that closes takes itself
	// out, and what it held is gone. Trouble with the record is logged, and in Status. Default: none.
	Membership Membership `yaml:"-"`
	// ForgetAfter is how long a member that has vanished is counted, before a majority agrees to go on without it.
	// It carries no safety, and does nothing while no more than MinMembers are counted. Longer than partitions and
	// restarts usually last, shorter than the second crash of a member without a stable name. Default 10m;
	// negative: never, see Replicator.Forget.
	ForgetAfter time.Duration `yaml:"forget-after"`
	// Durable lists the keys that are durable: names, and prefixes with a star behind them, as "cart-*"; "*" stands for all
	// keys. All members must list the same; one that lists others is named in Status.OtherDurable, and until
	// that is mended none of its changes of durable keys are taken here, nor ours there. Durable keys and the others are
	// replicated apart from each other, each with its own count of majorities and LogBytes of memory, and one
	// Atomically may change either. In a later life of a process the list must be that of the first.
	Durable []string `yaml:"durable"`
	// Store keeps the durable keys: a store of package badger or bbolt, of this member alone. The application opens it
	// before New, and closes it when the replicator has been closed for good (node.Run has returned); the
	// replicator never closes it. At the start all of it is read; until then operations on durable keys wait, as long as
	// their time lasts, and then return ErrLoading. Rows that belong to another Name, Member or cluster are refused, and
	// nothing is written. Set Member too: without one, a member that comes back at another address is another one to
	// the majorities. In a later life of a process the Store of the first counts. Required with Durable.
	Store store.Store `yaml:"-"`
	// WriteBehind is how long changes of durable keys may gather before they are written. With 0 an update returns
	// when its change is on the disks of so many members as its level says, this one included. With more it returns
	// when so many have it in memory, and a crash of all of them at once may cost the changes of this time, up to
	// 16 MiB of them: Flush waits for the disk. At most 1m. Default 0.
	WriteBehind time.Duration `yaml:"write-behind"`
	// Expiry gives entries a time to live, by their names or by prefixes with a star behind them, as "session-*"; a name counts
	// before a prefix, and a longer prefix before a shorter one. An entry that no member has used for its time is deleted, by one
	// member, for all: within a quarter of the time, ClockSkew twice and a few heartbeats more, where members see each other.
	// Uses are Get, by any key and at any level, Update, and Key.In; Snapshot, Changes, Subscribe and Keys are none. A use is
	// told to the others, as one small update, only if the last that is known is older than a quarter of the time; see
	// ExpireAfter for the time of one entry. Each is at least twice ClockSkew, and at most a hundred years.
	//
	// It is for caches. What is updated at the same time survives, alone: the entry then holds that and nothing of before. A
	// read at the same time, or in another part of a partition, does not keep the entry. A member deletes
	// nothing before it is Ready, nor while it sees half or less of the members that majorities are counted in; one that has been
	// cut off, and has not noticed yet, may delete what the others use. An entry that is there when it gets a time to live
	// first counts as used then.
	//
	// All members should have the same. If not, an entry expires after the shortest of their times, also while it is used at
	// members with a longer one, which tell of its use less often. Members of versions before this setting cannot read entries
	// that have a time to live: set it when all run this one.
	Expiry map[string]time.Duration `yaml:"expiry"`
	// ClockSkew is by how much the wall clocks of two members may differ, from 1ms to 1h. If they differ by more, entries may
	// expire that much too early, or stay that much longer, but never longer than their time, a quarter, and ClockSkew after a
	// member has seen them used. It should be the same at all members. Default 5s.
	ClockSkew time.Duration `yaml:"clock-skew"`
	// CloseOnStoreFailure has the replicator close itself, as by Close, when the store has failed for good
	// (store.ErrFailed): it then takes part in nothing any more, and everything returns ErrClosed. By default it goes on with
	// volatile keys, and shows durable keys as they are in memory, but acknowledges no change of them.
	CloseOnStoreFailure bool `yaml:"close-on-store-failure"`
	// HeartbeatInterval is how often each member tells some others what it has seen. A lost change is
	// noticed within about two of them. Default 1s.
	HeartbeatInterval time.Duration `yaml:"heartbeat-interval"`
	// OperationTimeout bounds operations whose context or message sets no deadline, also while the replicator's
	// goroutine is busy in a function of the application, and how long they wait for the next life of the
	// member. The same holds for Close. Default 5s.
	OperationTimeout time.Duration `yaml:"operation-timeout"`
	// NotifyInterval is how long changes are gathered before subscribers are told. Default 50ms;
	// negative: not at all.
	NotifyInterval time.Duration `yaml:"notify-interval"`
	// LogBytes is the memory in which a replica keeps, for members that missed changes, what the
	// changes were. One that missed more is sent the whole state. Default 64 MiB.
	LogBytes int `yaml:"log-bytes"`
	// MaxEntries is how many entries this member may make there be; it takes what others make all the same, so that
	// replicas stay equal. Default 1,000,000.
	//
	// Of this and the next three: one more is refused with ErrLimit, which names the setting, and nothing is done; from half
	// of it on Status.NearLimits has its name, and a line in the log says so, once a minute. Each is from 1 to 1,000,000,000,
	// and need not be the same at all members.
	MaxEntries int `yaml:"max-entries"`
	// MaxElements is how many elements a value may have after an update that adds some, counting all that lie in it: of maps
	// the parts of their values. A type of the application is one element. Default 1,000,000, which is also the most
	// that a value of package crdt takes; for more see ShardedMap.
	MaxElements int `yaml:"max-elements"`
	// MaxSubscriptions is how many subscriptions actors of this member may have. One more is logged. Loops over changes
	// do not count. Default 100,000.
	MaxSubscriptions int `yaml:"max-subscriptions"`
	// MaxOperations is how many reads and updates of this member may wait for others, or for the disk, at once.
	// Default 100,000.
	MaxOperations int `yaml:"max-operations"`
	// Meters is where the metrics go; see Status for their names. Default otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
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

// Validate reports every problem at once. The errors are ErrInvalid.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if len(c.Name) > 64 {
		bad("Name has %d bytes, over the limit of 64", len(c.Name))
	}
	if c.Member != "" {
		if err := core.CheckMember(c.Member); err != nil {
			bad("Member: %w", err)
		}
	}
	if c.MinMembers < 0 || c.MinMembers > maxMinMembers {
		bad("MinMembers is %d, must be from 1 to %d, or 0 for nothing but Local", c.MinMembers, maxMinMembers)
	}
	if _, err := newChoice(c.Durable); err != nil {
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
		bad("ForgetAfter is %v, must be at least HeartbeatInterval, %v", c.ForgetAfter, c.HeartbeatInterval)
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

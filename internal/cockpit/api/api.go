// Package api declares version 1 of the JSON that a cockpit serves. Its clients are the cockpit's
// page and program concordctl. docs/cockpit.md describes the endpoints.
//
// Within a version, fields are added but never removed, and no field changes its meaning. Durations
// are in milliseconds, and times are in RFC 3339 format. Lists are never null.
package api

import "time"

// Version is the version of the JSON.
const Version = 1

// Overview is a snapshot of a member and of its view of the cluster. Endpoint /api/v1/overview
// returns it. Each field except Version and At also has an endpoint of its own and is an event of
// the stream.
type Overview struct {
	Version     int          `json:"version"`
	At          time.Time    `json:"at"`
	Node        Node         `json:"node"`
	Health      Health       `json:"health"`
	Cluster     Cluster      `json:"cluster"`
	Peers       []Peer       `json:"peers"`
	Replicators []Replicator `json:"replicators"`
	Sessions    []Session    `json:"sessions"`
	Singletons  []Singleton  `json:"singletons"`
	Shards      []Shards     `json:"shards"`
	Times       []Times      `json:"times"`
	Changes     []Change     `json:"changes"`
	Problems    []Problem    `json:"problems"`
}

// Node is the process that serves the cockpit.
type Node struct {
	Name        string    `json:"name,omitempty"`
	Started     time.Time `json:"started"`     // of the cockpit
	Incarnation int       `json:"incarnation"` // 0: no member is shown
	// CPUSeconds to Goroutines are those of the whole process.
	CPUSeconds float64 `json:"cpu_seconds"` // 0 if the platform does not report it
	HeapBytes  uint64  `json:"heap_bytes"`
	Goroutines int     `json:"goroutines"`
	Viewers    int     `json:"viewers"`
	Actions    bool    `json:"actions"` // Config.Actions is set
	Values     bool    `json:"values"`  // Config.Values is not empty
	Metrics    bool    `json:"metrics"` // /metrics is served
	// Versions are those of the program: "go", "program" and "revision", and by module path those
	// of Concord and of Proto.Actor. One that the build has not recorded is missing.
	Versions map[string]string `json:"versions"`
}

// Health is the result of the probes of the node.
type Health struct {
	Known bool     `json:"known"` // the cockpit has a node.Health
	Live  bool     `json:"live"`
	Ready bool     `json:"ready"`
	Why   []string `json:"why"` // reasons, if not live or not ready
}

// Cluster is one member's view of its cluster.
type Cluster struct {
	Name    string   `json:"name"`
	Self    string   `json:"self"` // address of the member; empty: currently in no cluster
	Members []Member `json:"members"`
	// Lost are the addresses of members that were listed, are no longer listed, and did not leave
	// gracefully.
	Lost []string `json:"lost"`
	// Split are the addresses of running members whose view of the cluster conflicts with this
	// member's.
	Split      []string   `json:"split"`
	SplitSince *time.Time `json:"split_since,omitempty"`
	// GateOpen reports whether singletons and shards may run on this member. GateWhy has the
	// reasons why not.
	GateOpen bool     `json:"gate_open"`
	GateWhy  []string `json:"gate_why"`
	Removed  string   `json:"removed,omitempty"` // why this incarnation of the member ended
	// CutOff means that the member sees less than half of the members, or half of them and must not
	// host singletons and shards: the others are likely to run on the other side.
	CutOff bool `json:"cut_off"`
	// Fault is the last time during which the cluster was not whole. The cockpit notices faults
	// only while it is in use.
	Fault *Fault `json:"fault,omitempty"`
}

// Member is a member in a view.
type Member struct {
	ID      string   `json:"id"`
	Address string   `json:"address"`
	Roles   []string `json:"roles"`
	Self    bool     `json:"self"`
	Rank    int      `json:"rank"` // 1: the oldest; 0: age not known yet
	// AppVersion is the version of the application that the member announces, see
	// node.Config.AppVersion; empty if it announces none.
	AppVersion string `json:"app_version,omitempty"`
}

// Fault is a time during which the cluster was not whole.
type Fault struct {
	What    string     `json:"what"`
	Since   time.Time  `json:"since"`
	Healed  *time.Time `json:"healed,omitempty"`
	TookMS  int64      `json:"took_ms"` // from Since to Healed
	Ongoing bool       `json:"ongoing"`
}

// Peer is the view of another member, as its cockpit reports it.
type Peer struct {
	URL     string   `json:"url"`
	Self    string   `json:"self"`
	Members []string `json:"members"` // addresses in its view
	Lost    []string `json:"lost"`
	Split   []string `json:"split"`
	Error   string   `json:"error,omitempty"` // the peer did not answer
}

// Replicator is the status of one replica; see distributeddata.Status.
type Replicator struct {
	Name         string    `json:"name"`
	Replica      string    `json:"replica"`
	Address      string    `json:"address"`
	Ready        bool      `json:"ready"`
	NotReady     string    `json:"not_ready,omitempty"`
	Members      int       `json:"members"`
	Counted      int       `json:"counted"`
	Missing      []string  `json:"missing"`
	Trouble      string    `json:"trouble,omitempty"`
	OtherDurable []string  `json:"other_durable"`
	Keys         int       `json:"keys"`
	Vector       string    `json:"vector"`
	Lag          []Lag     `json:"lag"` // largest first, at most 64
	LogBytes     int       `json:"log_bytes"`
	Updates      uint64    `json:"updates"`
	Applied      uint64    `json:"applied"`
	Repairs      uint64    `json:"repairs"`
	Bulks        uint64    `json:"bulks"`
	Expired      uint64    `json:"expired"`
	Filled       uint64    `json:"filled"`
	ToFill       uint64    `json:"to_fill"`
	Diverged     uint64    `json:"diverged"`
	Corrupted    uint64    `json:"corrupted"`
	Mended       uint64    `json:"mended"`
	Malformed    uint64    `json:"malformed"`
	Strangers    uint64    `json:"strangers"`
	Waiting      uint64    `json:"waiting"`
	Faults       uint64    `json:"faults"`
	Panics       uint64    `json:"panics"`
	NearLimits   []string  `json:"near_limits"`
	Sent         []Traffic `json:"sent"` // by kind
	SentMessages uint64    `json:"sent_messages"`
	SentBytes    uint64    `json:"sent_bytes"`
	Durable      *Durable  `json:"durable,omitempty"`
}

// Lag is the number of updates that a member has not confirmed yet.
type Lag struct {
	Member  string `json:"member"`
	Updates uint64 `json:"updates"`
}

// Traffic counts what this replica sent of one kind of message.
type Traffic struct {
	Kind     string `json:"kind"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Durable is the status of the disk of a replica; see distributeddata.DurableStatus.
type Durable struct {
	Ready   bool   `json:"ready"`
	Keys    int    `json:"keys"`
	Disk    string `json:"disk"` // working, loading, stalled, full or failed
	Error   string `json:"error,omitempty"`
	Unsaved int    `json:"unsaved_bytes"`
	Batches uint64 `json:"batches"`
	Holes   int    `json:"holes"`
}

// Session is the status of a session with a lease store; see coordination.Status.
type Session struct {
	Name       string            `json:"name"`
	Owner      string            `json:"owner"` // empty: hidden
	Held       int               `json:"held"`
	NearExpiry int               `json:"near_expiry"`
	Waiting    int               `json:"waiting"`
	Known      int               `json:"known"` // number of leases that can be listed
	Granted    uint64            `json:"granted"`
	Taken      uint64            `json:"taken"`
	Unknown    uint64            `json:"unknown"`
	Released   uint64            `json:"released"`
	Lost       map[string]uint64 `json:"lost"` // by reason
	Failures   uint64            `json:"store_failures"`
	Failing    bool              `json:"failing"`
	Panics     uint64            `json:"panics"` // of the library
	// Leases are at most 12 leases, the most important first: near expiry, then with waiters, then
	// held by expiry. Endpoint /api/v1/leases returns all.
	Leases []Lease `json:"leases"`
}

// Lease is the state of one lease, as a session knows it.
type Lease struct {
	Session string     `json:"session"`
	Name    string     `json:"name"`
	State   string     `json:"state"` // held, near expiry, waiting, known
	Owner   string     `json:"owner"` // empty: none, unknown or hidden
	Token   uint64     `json:"token"`
	Forever bool       `json:"forever,omitempty"`
	Expires *time.Time `json:"expires,omitempty"` // if held by this session and not renewed
	Waiting int        `json:"waiting"`           // callers in this process that wait
	Failure string     `json:"failure,omitempty"` // error of the last call of the store
}

// Holder is the holder of a lease, as read from the lease store.
type Holder struct {
	Name        string `json:"name"`
	Owner       string `json:"owner"` // empty: none, or hidden
	Held        bool   `json:"held"`
	Token       uint64 `json:"token"`
	RemainingMS int64  `json:"remaining_ms"` // upper bound
	Forever     bool   `json:"forever,omitempty"`
}

// Singleton is the place of the instance of a singleton, as one member knows it.
type Singleton struct {
	Name  string     `json:"name"`
	State string     `json:"state"` // here, elsewhere, unknown
	Host  string     `json:"host"`  // address; if the state is unknown, of the last known host
	Token uint64     `json:"token"`
	Since *time.Time `json:"since,omitempty"` // when this member learned of it
	// TakeOverMS is how long this member knew no place before Since; 0: it always knew one.
	TakeOverMS int64  `json:"take_over_ms"`
	Refused    uint64 `json:"refused"`
	PassedOn   uint64 `json:"passed_on"`
	StateLost  uint64 `json:"state_lost"`
	Panics     uint64 `json:"panics"` // of the library
}

// Shards is the state of all shards of one type, as one member knows it.
type Shards struct {
	Type     string         `json:"type"`
	Shards   int            `json:"shards"`
	States   map[string]int `json:"states"`
	Homes    []Home         `json:"homes"` // by address
	Entities int            `json:"entities"`
	Waiting  int            `json:"waiting"`
	Refused  uint64         `json:"refused"`
	Failed   uint64         `json:"failed"`
	Panics   uint64         `json:"panics"` // of the library
	// Map has the home of each of the first 1,024 shards, as an index of Homes; -1: none yet.
	Map []int `json:"map"`
	// Movable reports whether action move can move shards of this type.
	Movable bool `json:"movable"`
	// StoreFails reports whether the store of remembered entities fails for calls of this member.
	StoreFails bool `json:"storeFails"`
	// Hosts are the addresses of the members in view that can host shards of this type.
	Hosts []string `json:"hosts"`
	// Requested is the number of shards for which a home has been requested.
	Requested int `json:"requested"`
}

// Home is a member that should host some of the shards.
type Home struct {
	ID      string `json:"id"`
	Address string `json:"address"` // the id if the address is unknown
	Shards  int    `json:"shards"`
	Here    bool   `json:"here"`
}

// Shard is the state of one shard, as one member knows it.
type Shard struct {
	Shard    int    `json:"shard"`
	State    string `json:"state"`
	Home     string `json:"home"`     // address; empty: none yet
	Token    uint64 `json:"token"`    // of the tenure on this member; 0: none
	Entities int    `json:"entities"` // running on this member
	Waiting  int    `json:"waiting"`
	// Since is when this member learned of State, Home and Token, by its own clock.
	Since *time.Time `json:"since,omitempty"`
	// TakeOverMS is how long this member waited for the lease before the shard became active here;
	// 0: it is not active here.
	TakeOverMS int64 `json:"take_over_ms"`
	// Lease is the name of the lease of the shard, which endpoint lease reads; empty: hidden.
	Lease string `json:"lease"`
	// Requested is the home that action move has requested; empty: none. The shard may not have
	// moved there yet, and does not while that member cannot host.
	Requested string `json:"requested"`
}

// Times are durations of one kind that the cockpit has observed while it was in use.
//
// Kind "behind" is how long a member had not confirmed all updates that this member had seen: from
// the first snapshot with a lag until the first without one. Members confirm with heartbeats, and
// updates that arrive meanwhile count, so each update took less. Kind "singletons" is how long this
// member knew no host of a singleton. Kind "shards" is how long this member waited for the previous
// home and the lease of a shard that it took over, the slowest of those that it took over together.
// Kind "faults" is how long the cluster was not whole.
type Times struct {
	Kind    string   `json:"kind"`
	Count   uint64   `json:"count"`   // of all observed
	Samples []Sample `json:"samples"` // the last 32, oldest first
}

// Sample is one duration.
type Sample struct {
	At   time.Time `json:"at"` // when it ended, by the clock of this member
	MS   int64     `json:"ms"`
	What string    `json:"what"`
}

// Change is a change of an entry that the cockpit noticed.
type Change struct {
	Replicator string    `json:"replicator"`
	Key        string    `json:"key"`
	At         time.Time `json:"at"` // when the cockpit noticed it
}

// Problem is something that is wrong, and what to do about it.
type Problem struct {
	Severity string `json:"severity"` // bad, warn
	What     string `json:"what"`
	Do       string `json:"do"`
}

// Event is a line that the node logged, or a change that the cockpit noticed.
type Event struct {
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
	Level string    `json:"level"`  // info, warn, error
	From  string    `json:"source"` // log, watch
	Text  string    `json:"text"`
}

// Key describes one entry without its value.
type Key struct {
	Key     string     `json:"key"`
	Type    string     `json:"type"`
	Durable bool       `json:"durable,omitempty"`
	Atoms   int        `json:"atoms"`
	Bytes   int        `json:"bytes"`
	Changed *time.Time `json:"changed,omitempty"` // if the cockpit noticed a recent change
	Value   bool       `json:"value"`             // the value can be shown
}

// Page is one page of a list. Next is the cursor of the next page, and is empty on the last page. A
// page may have fewer items than its limit, even none, and still be followed by another.
type Page[T any] struct {
	Version int    `json:"version"`
	Items   []T    `json:"items"`
	Next    string `json:"next"`
}

// Value is the value of one entry, as text.
type Value struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	Text    string `json:"text"`
	Cut     bool   `json:"cut,omitempty"`
}

// ReleaseAction is the body of a request to end the tenure of a lease that has the given token.
type ReleaseAction struct {
	Session string `json:"session"`
	Name    string `json:"name"`
	Token   uint64 `json:"token"`
}

// ForgetAction is the body of a request to remove a member that has stopped permanently from the
// count of majorities. Force removes it without asking the others, after a majority has been lost
// for good: what only that majority held is lost without an error.
type ForgetAction struct {
	Replicator string `json:"replicator"`
	Member     string `json:"member"`
	Force      bool   `json:"force,omitempty"`
}

// MoveAction is the body of a request to move a shard to a member, given by its address or id. The
// request stays in force, so that the shard returns to that member after a failure. An empty To
// withdraws the request; the shard then stays until a better balance moves it.
type MoveAction struct {
	Type  string `json:"type"`
	Shard int    `json:"shard"`
	To    string `json:"to"`
}

// Actions reports whether the client of the request may use actions.
type Actions struct {
	Version int  `json:"version"`
	Allowed bool `json:"allowed"`
}

// Error is the body of every response whose status is not 2xx.
type Error struct {
	Version int    `json:"version"`
	Error   string `json:"error"`
}

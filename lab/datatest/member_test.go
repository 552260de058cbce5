package datatest_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/lab/internal/listing"
	"github.com/concord-go/concord/node"
)

const memberEnv = "CONCORD_REAL_MEMBER"

// TestMain runs this process as a member if the driver started it.
func TestMain(m *testing.M) {
	if text := os.Getenv(memberEnv); text != "" {
		if err := runMember(text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// spec is the configuration that a process gets at its start.
type spec struct {
	Host        string
	Port        int
	Member      string // Config.Member; empty: the address
	MinMembers  int
	ForgetAfter time.Duration // 0: never
	Data        string        // directory of durable rows; empty: everything is volatile
	Engine      string        // the store: badger or bbolt
	Slow        bool          // its disk stalls now and then
	WriteBehind time.Duration
	// Record is the directory of a store that keeps the membership as a record; the settings of
	// the replicator are then the default ones. Empty: there is no record.
	Record string
	Barred string // a file: while it exists, this process cannot replace the record
}

// command is a request of the driver: a line on standard input.
type command struct {
	N      uint64
	Do     string
	List   []listing.Member
	Level  distributeddata.Consistency
	Within time.Duration
	Value  int
	Key    string // of a written set
	Member string // the member to forget
}

// answer is a line on standard output. Lines with N = 0 are unsolicited: here, ready.
type answer struct {
	N      uint64
	Err    string
	Quorum bool // the error is ErrQuorum
	Here   *listing.Member
	Ready  bool
	Dump   *dump
	Values []int                   // of a written set
	Status *distributeddata.Status `json:",omitempty"`
}

// dump is the content of a member.
type dump struct {
	Hash    string // of the canonical bytes of every entry
	Seen    string // vector
	Numbers []int
	Hits    uint64
	Balance int64
	Gone    int
	Status  distributeddata.Status
}

var (
	numbers = distributeddata.NewKey("numbers", crdt.ORSet[int]{})
	hits    = distributeddata.NewKey("hits", crdt.GCounter{})
	balance = distributeddata.NewKey("balance", crdt.PNCounter{})
	gone    = distributeddata.NewKey("gone", crdt.GSet[int]{})
)

// member is a process of the cluster.
type member struct {
	spec
	provider *listing.Provider
	rows     store.Store // nil: everything is volatile
	dd       atomic.Pointer[distributeddata.Replicator]
	leave    context.CancelFunc
	out      struct {
		sync.Mutex
		*json.Encoder
	}
}

// runMember runs until the end of the input, and then leaves in order.
func runMember(text string, in io.Reader, out io.Writer) error {
	m := &member{}
	m.out.Encoder = json.NewEncoder(out)
	m.provider = &listing.Provider{Here: func(own listing.Member) { m.say(answer{Here: &own}) }}
	if err := json.Unmarshal([]byte(text), &m.spec); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := m.openRows(logger); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	m.leave = stop
	go func() {
		defer stop()
		if err := m.serve(in); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	err := node.Run(ctx, node.RunConfig{
		Cluster:  "real",
		Remote:   node.Config{Host: m.Host, Port: m.Port, PlaintextUnsafe: true},
		Provider: func() (cluster.ClusterProvider, error) { return m.provider, nil },
		// the driver lists each process once
		StartTimeout: patience, StopTimeout: patience, OnSplit: node.Exit,
		Logger: logger,
	}, m.register)
	if m.rows != nil {
		err = errors.Join(err, m.rows.Close())
	}
	return err
}

// openRows opens the store that the spec names.
func (m *member) openRows(logger *slog.Logger) (err error) {
	switch {
	case m.Data == "":
	case m.Engine == "badger":
		m.rows, err = badger.Open(m.Data, badger.Config{Logger: logger})
	case m.Engine == "bbolt":
		m.rows, err = bbolt.Open(m.Data, bbolt.Config{Logger: logger})
	default:
		err = fmt.Errorf("no store is called %q", m.Engine)
	}
	if err == nil && m.Slow {
		m.rows = slowStore{m.rows}
	}
	return err
}

func (m *member) say(a answer) {
	m.out.Lock()
	defer m.out.Unlock()
	_ = m.out.Encode(a) // the end of the input shows that the driver is gone
}

// register creates the replicator, and notifies the driver when it counts.
func (m *member) register(n *node.Node) error {
	cfg := distributeddata.Config{
		Member: m.Member, MinMembers: m.MinMembers, ForgetAfter: cmp.Or(m.ForgetAfter, -1),
		HeartbeatInterval: 200 * time.Millisecond,
	}
	if m.rows != nil {
		cfg.Store, cfg.Durable, cfg.WriteBehind = m.rows, []string{"*"}, m.WriteBehind
	}
	if m.Record != "" {
		records, err := m.openRecords()
		if err != nil {
			return err
		}
		cfg = distributeddata.Config{Member: m.Member, Membership: records, Store: cfg.Store,
			Durable: cfg.Durable, WriteBehind: cfg.WriteBehind}
	}
	dd, err := distributeddata.New(n.System, cfg)
	if err != nil {
		return err
	}
	m.dd.Store(dd)
	n.Go(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := dd.Ready(ctx); err != nil {
			m.say(answer{Err: err.Error()})
		} else {
			m.say(answer{Ready: true})
		}
		return nil
	})
	return nil
}

// serve carries out commands until the end of the input.
func (m *member) serve(in io.Reader) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var do command
		switch err := json.Unmarshal(lines.Bytes(), &do); {
		case err != nil:
			return err
		case do.Do == "list":
			m.provider.List(do.List) // in the order of arrival
			m.say(answer{N: do.N})
		case do.Do == "leave":
			m.leave()
			m.say(answer{N: do.N})
		default:
			go func() { m.say(do.run(m.dd.Load())) }()
		}
	}
	return nil
}

// run carries out an operation.
func (do command) run(dd *distributeddata.Replicator) answer {
	ctx, cancel := context.WithTimeout(context.Background(), do.Within)
	defer cancel()
	a := answer{N: do.N}
	var err error
	switch do.Do {
	case "add":
		_, err = numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error {
			v.Add(w, do.Value)
			return nil
		}, do.Level)
	case "remove":
		_, err = numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error {
			v.Remove(w, do.Value)
			return nil
		}, do.Level)
	case "hit":
		_, err = hits.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error {
			v.Add(w, uint64(do.Value))
			return nil
		}, do.Level)
	case "book":
		_, err = balance.Update(ctx, dd, func(w *crdt.Writer, v *crdt.PNCounter) error {
			v.Add(w, int64(do.Value))
			return nil
		}, do.Level)
	case "mark":
		_, err = gone.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GSet[int]) error {
			v.Add(w, do.Value)
			return nil
		}, do.Level)
	case "delete":
		err = gone.Delete(ctx, dd, do.Level)
	case "write":
		_, err = written(do.Key).Update(ctx, dd, func(w *crdt.Writer, v *crdt.GSet[int]) error {
			v.Add(w, do.Value)
			return nil
		}, do.Level)
	case "read":
		a.Values, err = values(ctx, dd, do)
	case "flush":
		err = dd.Flush(ctx)
	case "forget":
		err = dd.Forget(ctx, do.Member)
	case "status":
		s := dd.Status()
		a.Status = &s
	case "dump":
		if do.Level != distributeddata.Local {
			// Afterwards this member has what a majority knows.
			_, err = numbers.Get(ctx, dd, do.Level)
		}
		if err == nil {
			a.Dump, err = newDump(dd)
		}
	default:
		err = fmt.Errorf("command %q", do.Do)
	}
	if err != nil {
		a.Err, a.Quorum = err.Error(), errors.Is(err, distributeddata.ErrQuorum)
	}
	return a
}

// written returns the key of a set that clients write their own numbers to.
func written(key string) distributeddata.Key[crdt.GSet[int]] {
	return distributeddata.NewKey(key, crdt.GSet[int]{})
}

// values reads such a set, which may not exist yet.
func values(ctx context.Context, dd *distributeddata.Replicator, do command) (out []int,
	err error) {
	v, err := written(do.Key).Get(ctx, dd, do.Level)
	if errors.Is(err, distributeddata.ErrNotFound) {
		return nil, nil
	}
	for n := range v.All() {
		out = append(out, n)
	}
	return out, err
}

// newDump reads all entries from one snapshot.
func newDump(dd *distributeddata.Replicator) (*dump, error) {
	s := dd.Snapshot()
	set, err1 := held(numbers, s)
	count, err2 := held(hits, s)
	sum, err3 := held(balance, s)
	marks, err4 := held(gone, s)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	d := &dump{Status: dd.Status(), Hits: count.Value(), Balance: sum.Value(), Gone: marks.Len()}
	d.Seen = d.Status.Seen
	for v := range set.All() {
		d.Numbers = append(d.Numbers, v)
	}
	h := sha256.New()
	for _, v := range []encoding.BinaryAppender{set, count, sum, marks} {
		raw, err := v.AppendBinary(nil)
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(h, "%d %x\n", len(raw), raw)
	}
	d.Hash = fmt.Sprintf("%x", h.Sum(nil))
	return d, nil
}

// held reads an entry, which may not exist.
func held[T crdt.Value[T]](k distributeddata.Key[T], s distributeddata.Snapshot) (T, error) {
	v, err := k.Of(s)
	if errors.Is(err, distributeddata.ErrNotFound) {
		err = nil
	}
	return v, err
}

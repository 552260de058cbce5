package realtest_test

import (
	"bufio"
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
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
)

const memberEnv = "CONCORD_REAL_MEMBER"

// TestMain makes a member of this process if the driver started it.
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

// spec is what a process is told at its start.
type spec struct {
	Host string
	Port int
}

// listed is a member as the provider knows it.
type listed struct {
	ID, Host string
	Port     int
	Kinds    []string
}

// command is what the driver asks: a line on standard input.
type command struct {
	N      uint64
	Do     string
	List   []listed
	Level  distributeddata.Consistency
	Within time.Duration
	Value  int
}

// answer is a line on standard output. Those with N = 0 come unasked: here, ready.
type answer struct {
	N      uint64
	Err    string
	Quorum bool // the error is ErrQuorum
	Here   *listed
	Ready  bool
	Dump   *dump
}

// dump is what a member holds.
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

// told is a provider that lists whom the driver says.
type told struct {
	say     func(answer)
	cluster *cluster.Cluster
}

func (p *told) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	if err == nil {
		p.cluster = c
		p.say(answer{Here: &listed{c.ActorSystem.ID, host, port, c.GetClusterKinds()}})
	}
	return err
}

func (p *told) StartClient(*cluster.Cluster) error { return nil }
func (p *told) Shutdown(bool) error                { return nil }

func (p *told) list(all []listed) {
	var members cluster.Members
	for _, m := range all {
		members = append(members, &cluster.Member{Id: m.ID, Host: m.Host, Port: int32(m.Port), Kinds: m.Kinds}) //nolint:gosec // a port
	}
	p.cluster.MemberList.UpdateClusterTopology(members)
}

// runMember lives until the end of the input.
func runMember(text string, in io.Reader, out io.Writer) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	var mu sync.Mutex
	write := json.NewEncoder(out)
	say := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		_ = write.Encode(a) // a driver that is gone is noticed at the end of the input
	}
	rc, err := node.Remote(node.Config{Host: s.Host, Port: s.Port, PlaintextUnsafe: true})
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	provider := &told{say: say}
	c := cluster.New(system, node.Cluster("real", provider, rc))
	dd, err := distributeddata.New(system, distributeddata.Config{MinMembers: 3, HeartbeatInterval: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := node.Start(ctx, c)
		if err == nil {
			err = dd.Ready(ctx)
		}
		if err != nil {
			say(answer{Err: err.Error()})
			return
		}
		say(answer{Ready: true})
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var do command
		switch err := json.Unmarshal(lines.Bytes(), &do); {
		case err != nil:
			return err
		case do.Do == "list":
			provider.list(do.List) // in the order in which they come
			say(answer{N: do.N})
		default:
			go func() { say(do.run(dd)) }()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return node.Shutdown(ctx, c)
}

// run carries out an operation.
func (do command) run(dd *distributeddata.Replicator) answer {
	ctx, cancel := context.WithTimeout(context.Background(), do.Within)
	defer cancel()
	a := answer{N: do.N}
	var err error
	switch do.Do {
	case "add":
		_, err = numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error { v.Add(w, do.Value); return nil }, do.Level)
	case "remove":
		_, err = numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error { v.Remove(w, do.Value); return nil }, do.Level)
	case "hit":
		_, err = hits.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, uint64(do.Value)); return nil }, do.Level) //nolint:gosec // not negative
	case "book":
		_, err = balance.Update(ctx, dd, func(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, int64(do.Value)); return nil }, do.Level)
	case "mark":
		_, err = gone.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GSet[int]) error { v.Add(w, do.Value); return nil }, do.Level)
	case "delete":
		err = gone.Delete(ctx, dd, do.Level)
	case "dump":
		if do.Level != distributeddata.Local {
			_, err = numbers.Get(ctx, dd, do.Level) // what a majority knows is here then
		}
		if err == nil {
			a.Dump, err = newDump(dd)
		}
	default:
		err = fmt.Errorf("command %q", do.Do)
	}
	if err != nil {
		a.Err, a.Quorum = err.Error(), isQuorum(err)
	}
	return a
}

// newDump takes all entries from one snapshot.
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

// held reads an entry, which may not be there.
func held[T crdt.Value[T]](k distributeddata.Key[T], s distributeddata.Snapshot) (T, error) {
	v, err := k.Of(s)
	if errors.Is(err, distributeddata.ErrNotFound) {
		err = nil
	}
	return v, err
}

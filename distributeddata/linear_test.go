package distributeddata_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/testkit/history"
)

var quorumOperations = flag.Int("operations", 1505,
	"how many quorum operations are checked for linearizability")

// total is the model of a counter that is read exactly.
func total() history.Model[uint64, totalOp, uint64] {
	return history.Model[uint64, totalOp, uint64]{
		Step: func(s uint64, in totalOp, out history.Outcome[uint64]) []uint64 {
			switch {
			case in.read && out.Value != s:
				return nil
			case in.read:
				return []uint64{s}
			case !out.Known:
				return []uint64{s, s + 1}
			}
			return []uint64{s + 1}
		},
		Part: func(in totalOp) string { return in.key },
	}
}

type totalOp struct {
	key  string
	read bool
}

// quorums runs clients on each of seven members, which lose messages and are cut off by ones and
// twos, until a number of operations are done on each of several keys.
func quorums(t *testing.T, name string, do func(ctx context.Context, dd *distributeddata.Replicator,
	client int, key string, r *rand.Rand)) {
	const members, perKey = 7, 301
	keys := min(10, *quorumOperations/perKey)
	for round := range *quorumOperations / (keys * perKey) {
		t.Run(fmt.Sprintf("%s/round=%d", name, round), func(t *testing.T) {
			run(t, members, distributeddata.Config{MinMembers: members,
				HeartbeatInterval: 200 * time.Millisecond}, func(c *cluster) {
				c.Net.SetAll(simnet.Faults{Loss: 0.3, Jitter: 50 * time.Millisecond})
				var wg sync.WaitGroup
				for key := range keys {
					for client := range members {
						r := rand.New(rand.NewPCG(uint64(round), uint64(100*key+client)))
						wg.Go(func() {
							for range perKey / members {
								ctx, cancel := context.WithTimeout(context.Background(),
									300*time.Millisecond)
								do(ctx, c.at(client), members*key+client,
									fmt.Sprint("key-", round, "-", key), r)
								cancel()
								time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
							}
						})
					}
				}
				ended := make(chan struct{})
				go func() { wg.Wait(); close(ended) }()
				r := rand.New(rand.NewPCG(uint64(round), 1))
				for {
					select {
					case <-ended:
						return
					case <-time.After(time.Duration(100+r.IntN(400)) * time.Millisecond):
					}
					c.Net.Heal()
					if cut := r.IntN(4); cut > 0 {
						order := r.Perm(members)
						c.Net.Partition(addresses(c, order[:cut]...), addresses(c, order[cut:]...))
					}
				}
			})
		})
	}
}

// Increments on a majority and linearizable reads of counters are linearizable while the view is
// stable.
func TestQuorums_CountersAreLinearizable(t *testing.T) {
	var rec history.Recorder[totalOp, uint64]
	quorums(t, "counter", func(ctx context.Context, dd *distributeddata.Replicator, client int,
		key string, r *rand.Rand) {
		increment(ctx, &rec, dd, client, key, r)
	})
	judge(t, total(), rec.Operations())
}

// Writes of registers are linearizable too, as far as the clocks of the members agree on their
// order.
func TestQuorums_RegistersAreLinearizable(t *testing.T) {
	var rec history.Recorder[history.RegisterOp, history.RegisterResult]
	quorums(t, "register", func(ctx context.Context, dd *distributeddata.Replicator, client int,
		key string, r *rand.Rand) {
		k := distributeddata.NewKey(key, crdt.LWWRegister[string]{})
		if r.IntN(2) == 0 {
			value := strconv.Itoa(client) + "-" + strconv.Itoa(int(r.Uint32()))
			op := rec.Begin(client, history.RegisterOp{Key: key, Kind: history.Write, Value: value})
			_, err := k.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWRegister[string]) error {
				v.Set(w, value)
				return nil
			}, distributeddata.Majority)
			finish(op, history.RegisterResult{}, err, false)
			return
		}
		op := rec.Begin(client, history.RegisterOp{Key: key, Kind: history.Read})
		v, err := k.Get(ctx, dd, distributeddata.Linearizable)
		value, _ := v.Value()
		finish(op, history.RegisterResult{Value: value}, err, true)
	})
	judge(t, history.Register(), rec.Operations())
}

// finish records an answer. A failed read has shown nothing. A failed update is kept here all the
// same, and may become visible at any time.
func finish[I, O any](op *history.Pending[I, O], out O, err error, read bool) {
	switch {
	case err == nil || errors.Is(err, distributeddata.ErrNotFound):
		op.End(out)
	case read:
		op.Discard()
	default:
		op.Unknown()
	}
}

func judge[S comparable, I, O any](t *testing.T, m history.Model[S, I, O],
	ops []history.Operation[I, O]) {
	t.Helper()
	known := 0
	for _, op := range ops {
		if op.Output.Known {
			known++
		}
	}
	t.Logf("%d operations, %d of them with a known outcome", len(ops), known)
	if known < len(ops)/2 {
		t.Fatalf("only %d of %d operations ended well: the history shows nothing", known, len(ops))
	}
	history.Check(t, m, ops)
}

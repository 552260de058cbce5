//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	actors "github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/singleton"
)

// startConcord returns a member of a cluster of Concord when all members are counted.
func startConcord(index int, ports []int) (*member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	system, c, err := newConcord(index, ports)
	if err != nil {
		return nil, err
	}
	dd, err := distributeddata.New(system, distributeddata.Config{MinMembers: clusterSize})
	if err != nil {
		return nil, err
	}
	if err := node.Start(ctx, c); err != nil {
		return nil, err
	}
	if err := dd.Ready(ctx); err != nil {
		return nil, err
	}
	for s := dd.Status(); s.Members < clusterSize || s.Counted < clusterSize; s = dd.Status() {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d of %d members after %v", s.Members, clusterSize,
				startTimeout)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return &member{root: system.Root, target: dd.PID(), open: func(w work) requests {
		return concordRequests(dd, w)
	}}, nil
}

func newConcord(index int, ports []int) (*actor.ActorSystem, *actors.Cluster, error) {
	system := measure.System()
	rc, err := node.Remote(node.Config{Port: ports[index]})
	if err != nil {
		return nil, nil, err
	}
	var hosts []string
	for _, p := range ports[clusterSize:] {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", p))
	}
	provider := automanaged.NewWithConfig(200*time.Millisecond, ports[clusterSize+index], hosts...)
	return system, actors.New(system, node.Cluster("peers", provider, rc)), nil
}

// openSession opens a session with leases that are files in a directory.
func openSession(dir string, ttl time.Duration) (*coordination.Session, error) {
	store, err := file.Open(dir)
	if err != nil {
		return nil, err
	}
	return coordination.Open(store, coordination.Config{TTL: ttl})
}

// startHost starts a member with a singleton, whose leases are files. It begins when all members
// are there.
func startHost(index int, ports []int, leases string, ttl time.Duration) (*member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	system, c, err := newConcord(index, ports)
	if err != nil {
		return nil, err
	}
	session, err := openSession(leases, ttl)
	if err != nil {
		return nil, err
	}
	_, err = singleton.New(system, session, singleton.Config{Name: "host", MinMembers: clusterSize},
		func(coordination.Tenure) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					fmt.Printf("@ hosts at=%d\n", time.Now().UnixNano())
				}
			})
		})
	if err != nil {
		return nil, err
	}
	return &member{root: system.Root}, node.Start(ctx, c)
}

func concordRequests(dd *distributeddata.Replicator, w work) requests {
	if open := w.maker(); open != nil {
		return open(dd, w)
	}
	switch w.kind {
	case "counter":
		add := func(wr *crdt.Writer, v *crdt.PNCounter) error { v.Add(wr, 1); return nil }
		return requestsOf(dd, w, crdt.PNCounter{}, func(int) func(*crdt.Writer,
			*crdt.PNCounter) error {
			return add
		}, nil,
			func(v crdt.PNCounter, want, _ int) bool { return v.Value() >= int64(want) })
	case "register":
		set := func(wr *crdt.Writer, v *crdt.LWWRegister[string]) error {
			old, _ := v.Value()
			v.Set(wr, numbered(numberOf(old)+1, w.size))
			return nil
		}
		return requestsOf(dd, w, crdt.LWWRegister[string]{}, func(int) func(*crdt.Writer,
			*crdt.LWWRegister[string]) error {
			return set
		}, nil,
			func(v crdt.LWWRegister[string], want, _ int) bool {
				s, _ := v.Value()
				return numberOf(s) >= want
			})
	}
	elements := elementsOf(w)
	return requestsOf(dd, w, crdt.ORSet[string]{},
		func(i int) func(*crdt.Writer, *crdt.ORSet[string]) error {
			return func(wr *crdt.Writer, v *crdt.ORSet[string]) error {
				v.Add(wr, elements[i/w.keys%w.elems])
				return nil
			}
		},
		func(total int) func(*crdt.Writer, *crdt.ORSet[string]) error {
			return func(wr *crdt.Writer, v *crdt.ORSet[string]) error {
				v.Add(wr, markOf(total))
				return nil
			}
		},
		func(v crdt.ORSet[string], _, total int) bool { return v.Contains(markOf(total)) })
}

func requestsOf[T crdt.Value[T]](dd *distributeddata.Replicator, w work, zero T,
	change, mark func(i int) func(*crdt.Writer, *T) error, has func(v T, want, total int) bool,
) requests {
	ctx := context.Background()
	keys := make([]distributeddata.Key[T], w.keys)
	for i := range keys {
		keys[i] = distributeddata.NewKey(w.key(i), zero)
	}
	level := distributeddata.Local
	switch w.op {
	case majority, directMajority:
		level = distributeddata.Majority
	case all:
		level = distributeddata.All
	}
	r := requests{
		get: func(i int) any { return &distributeddata.Get[T]{Key: keys[i%w.keys]} },
		update: func(i int) any {
			return &distributeddata.Update[T]{Key: keys[i%w.keys], Modify: change(i), At: level}
		},
		has: func(key, want, total int) bool {
			v, err := keys[key].Get(ctx, dd)
			return err == nil && has(v, want, total)
		},
		direct: func(i int) error {
			_, err := keys[i%w.keys].Update(ctx, dd, change(i), level)
			return err
		},
	}
	if mark != nil {
		r.mark = func(key, total int) any {
			return &distributeddata.Update[T]{Key: keys[key],
				At: distributeddata.Local, Modify: mark(total)}
		}
	}
	if w.op == directGet {
		r.direct = func(i int) error {
			_, err := keys[i%w.keys].Get(ctx, dd)
			return err
		}
	}
	return r
}

// digits is the length of the number at the beginning of a register's value.
const digits = 10

// numbered returns a text of size bytes that begins with n.
func numbered(n, size int) string {
	var b strings.Builder
	b.Grow(size)
	number := strconv.Itoa(n)
	for range digits - len(number) {
		b.WriteByte('0')
	}
	b.WriteString(number)
	for b.Len() < size {
		b.WriteString(filler[:min(len(filler), size-b.Len())])
	}
	return b.String()
}

var filler = strings.Repeat("x", 1000)

// numberOf returns the number at the beginning of a text of numbered, or 0.
func numberOf(text string) int {
	n, _ := strconv.Atoi(text[:min(digits, len(text))])
	return n
}

func elementsOf(w work) (elements []string) {
	for i := range w.elems {
		elements = append(elements, numbered(i, w.size))
	}
	return elements
}

// markOf returns the element that says that all sets of a group have had total updates.
func markOf(total int) string { return "mark-" + strconv.Itoa(total) }

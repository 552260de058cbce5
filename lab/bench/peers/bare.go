//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/lab/bench/internal/measure"
)

// bare holds an entry for each key, and sends each update to the others, which acknowledge it with
// its number. It does not merge, and lost messages are not resent.
type bare struct {
	entries map[string]*bareEntry
	others  []*actor.PID
	waiting map[uint64]*actor.PID // by update: the actor to answer
	last    uint64
}

type bareEntry struct {
	number int // of increments, or the number of the register's value
	value  string
	set    map[string]struct{}
}

type (
	bareGet    struct{ key string }
	bareUpdate struct {
		key      string
		kind     byte   // as in the kinds of work: c, r or s
		element  string // added to a set
		size     int    // of a register's value
		majority bool
	}
	// bareTotal answers both.
	bareTotal struct{ number int }
	// bareHas asks for an element of a set.
	bareHas struct{ key, element string }
)

// Receive implements actor.Actor.
func (a *bare) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *bareGet:
		ctx.Respond(&bareTotal{a.entry(m.key).number})
	case *bareHas:
		_, ok := a.entry(m.key).set[m.element]
		ctx.Respond(ok)
	case *bareUpdate:
		e, payload := a.entry(m.key), m.element
		if m.kind == 'r' {
			payload = numbered(e.number+1, m.size)
		}
		e.change(m.kind, payload)
		a.last++
		message := &wrapperspb.BytesValue{Value: encodeBare(a.last, m.kind, m.key, payload)}
		for _, o := range a.others {
			ctx.Request(o, message)
		}
		if m.majority {
			a.waiting[a.last] = ctx.Sender()
		} else if ctx.Sender() != nil {
			ctx.Respond(&bareTotal{e.number})
		}
	case *wrapperspb.BytesValue:
		n, kind, key, payload := decodeBare(m.Value)
		a.entry(key).change(kind, payload)
		ctx.Respond(&wrapperspb.UInt64Value{Value: n})
	case *wrapperspb.UInt64Value:
		if to := a.waiting[m.Value]; to != nil {
			delete(a.waiting, m.Value)
			ctx.Send(to, &bareTotal{})
		}
	}
}

func (a *bare) entry(key string) *bareEntry {
	e := a.entries[key]
	if e == nil {
		e = &bareEntry{set: map[string]struct{}{}}
		a.entries[key] = e
	}
	return e
}

func (e *bareEntry) change(kind byte, payload string) {
	switch kind {
	case 'c':
		e.number++
	case 'r':
		e.number, e.value = numberOf(payload), payload
	case 's':
		e.set[payload] = struct{}{}
	}
}

func encodeBare(n uint64, kind byte, key, payload string) []byte {
	b := make([]byte, 0, 16+len(key)+len(payload))
	b = append(binary.AppendUvarint(b, n), kind)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(b, payload...)
}

// decodeBare reads what encodeBare of another member wrote.
func decodeBare(b []byte) (n uint64, kind byte, key, payload string) {
	n, i := binary.Uvarint(b)
	kind, b = b[i], b[i+1:]
	length, i := binary.Uvarint(b)
	b = b[i:]
	return n, kind, string(b[:length]), string(b[length:])
}

// startBare starts a member with the remoting of Proto.Actor as it is, without a cluster, except
// that it receives batches of more than 4 MB, which gRPC would reject.
func startBare(index int, ports []int) (*member, error) {
	system := measure.System()
	remote.NewRemote(system, remote.Configure("127.0.0.1", ports[index], remote.WithServerOptions(
		grpc.MaxRecvMsgSize(1<<30)))).Start()
	a := &bare{entries: map[string]*bareEntry{}, waiting: map[uint64]*actor.PID{}}
	for i, port := range ports[:clusterSize] {
		if i != index {
			a.others = append(a.others, actor.NewPID(fmt.Sprintf("127.0.0.1:%d", port), "bare"))
		}
	}
	pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor {
		return a
	}), "bare")
	if err != nil {
		return nil, err
	}
	return &member{root: system.Root, target: pid, open: func(w work) requests {
		return bareRequests(system.Root, pid, w)
	}}, nil
}

func bareRequests(root *actor.RootContext, target *actor.PID, w work) requests {
	keys := make([]string, w.keys)
	for i := range keys {
		keys[i] = w.key(i)
	}
	elements := elementsOf(w)
	r := requests{
		get: func(i int) any { return &bareGet{keys[i%w.keys]} },
		update: func(i int) any {
			m := &bareUpdate{key: keys[i%w.keys], kind: w.kind[0], size: w.size,
				majority: w.op == majority}
			if w.elems > 0 {
				m.element = elements[i/w.keys%w.elems]
			}
			return m
		},
		has: func(key, want, _ int) bool {
			res, err := root.RequestFuture(target, &bareGet{keys[key]}, time.Second).Result()
			return err == nil && res.(*bareTotal).number >= want
		},
	}
	if w.kind == "set" {
		r.mark = func(key, total int) any {
			return &bareUpdate{key: keys[key], kind: 's', element: markOf(total)}
		}
		r.has = func(key, _, total int) bool {
			res, err := root.RequestFuture(target, &bareHas{keys[key], markOf(total)},
				time.Second).Result()
			return err == nil && res.(bool)
		}
	}
	return r
}

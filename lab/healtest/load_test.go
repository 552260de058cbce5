//go:build linux

package healtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/singleton"
)

const (
	addInterval = 100 * time.Millisecond // to the counter, at Local
	setInterval = 500 * time.Millisecond // to the set, at Majority
	askInterval = 200 * time.Millisecond
	opTimeout   = 2 * time.Second
)

// Every add increments two counters: a common one, and one of the process under its own key, which
// shows whose adds are missing.
var (
	sum  = distributeddata.NewKey("adds", crdt.GCounter{})
	set  = distributeddata.NewKey("set", crdt.ORSet[string]{})
	part = "adds-"
)

func addsOf(name string) distributeddata.Key[crdt.GCounter] {
	return distributeddata.NewKey(part+name, crdt.GCounter{})
}

// load counts the operations of a member process.
type load struct {
	mu           sync.Mutex
	added, maybe uint64
	asked        time.Duration
	askErr       string
	stopping     sync.Once
}

func (l *load) fill(s *status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Added, s.Maybe, s.Asked, s.AskErr = l.added, l.maybe, l.asked, l.askErr
}

// answered is an answered request to the singleton.
type answered struct {
	Sent, At time.Duration
	By       string // token and instance
}

// acked is an element of the set that was acknowledged at Majority.
type acked struct {
	At      time.Duration
	Element string
}

// work starts the load, which continues through all incarnations, and the reports.
func (m *member) work(working *sync.WaitGroup) {
	own := addsOf(m.Name)
	var asking sync.WaitGroup
	m.every(working, addInterval, func(int) { m.add(own) })
	m.every(working, setInterval, func(i int) { m.insert(fmt.Sprintf("%s-%d", m.Name, i)) })
	m.every(working, askInterval, func(int) { asking.Go(m.ask) })
	go func() {
		<-m.quiet
		working.Wait()
		m.say(report{Status: m.status()})
		m.say(report{Quiet: true})
	}()
	go func() {
		for range time.Tick(statusInterval) {
			m.say(report{Status: m.status()})
		}
	}()
}

// every calls f at intervals until the load ends, without overlapping calls.
func (m *member) every(working *sync.WaitGroup, interval time.Duration, f func(i int)) {
	working.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-m.quiet:
				return
			case <-tick.C:
				f(i)
			}
		}
	})
}

func (m *member) stopLoad() { m.load.stopping.Do(func() { close(m.quiet) }) }

func (m *member) add(own distributeddata.Key[crdt.GCounter]) {
	dd := m.dd.Load()
	if dd == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
		sum.In(tx).Add(tx.Writer, 1)
		own.In(tx).Add(tx.Writer, 1)
		return nil
	}, distributeddata.Local)
	m.load.mu.Lock()
	defer m.load.mu.Unlock()
	switch {
	case err == nil:
		m.load.added++
	case errors.Is(err, distributeddata.ErrUnknown), errors.Is(err, distributeddata.ErrClosed),
		errors.Is(err, distributeddata.ErrStore):
		m.load.maybe++
	default:
		fmt.Fprintln(os.Stderr, "not added:", err)
	}
}

func (m *member) insert(element string) {
	dd := m.dd.Load()
	if dd == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	_, err := set.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
		v.Add(w, element)
		return nil
	},
		distributeddata.Majority)
	if err == nil {
		m.say(report{Acked: &acked{bootTime(), element}})
	}
}

func (m *member) ask() {
	worker := m.worker.Load()
	if worker == nil {
		return
	}
	sent := bootTime()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	by, err := singleton.As[*wrapperspb.StringValue](worker.Ask(ctx, wrapperspb.String(m.Name)))
	m.load.mu.Lock()
	defer m.load.mu.Unlock()
	switch {
	case err != nil:
		m.load.askErr = err.Error()
	case by.Value == "":
		m.load.askErr = "the instance answers that its lease is lost"
	default:
		if sent > m.load.asked {
			m.load.asked, m.load.askErr = sent, ""
		}
		go m.say(report{Answered: &answered{sent, bootTime(), by.Value}})
	}
}

// read fills in the status of the data from one snapshot.
func (m *member) read(dd *distributeddata.Replicator, s *status) {
	now, state := dd.Snapshot(), dd.Status()
	s.Faulty = state.Diverged + state.Corrupted + state.Mended + state.Malformed
	if v, err := sum.Of(now); err == nil {
		s.Sum = v.Value()
	}
	if v, err := set.Of(now); err == nil {
		s.Set = v.Len()
	}
	for key := range dd.Keys() {
		if name, ok := strings.CutPrefix(key, part); ok {
			if v, err := addsOf(name).Of(now); err == nil {
				s.By[name] = v.Value()
			}
		}
	}
}

func (m *member) elements() (all []string) {
	if dd := m.dd.Load(); dd != nil {
		if v, err := set.Of(dd.Snapshot()); err == nil {
			for e := range v.All() {
				all = append(all, e)
			}
		}
	}
	return append(all, m.deposits()...)
}

package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Membership keeps the record of who is counted in majorities, in a store outside of the cluster:
// at most 128 KiB that are replaced by compare-and-set. A *coordination.Document is one. See
// Config.Membership.
//
// The replicator makes one call at a time, in a goroutine of its own. A call that panics, ends its
// goroutine or takes longer than Config.OperationTimeout has failed; while one has not returned
// after that, no other is made.
type Membership interface {
	// Load returns the record and its version; without a record the version is empty. The answer is as
	// new as the call: a Swap that returned before is seen.
	Load(ctx context.Context) (record []byte, version string, err error)
	// Swap writes next if the version is still old, empty for no record, and returns the new version.
	// Swapped is false, with a nil error, if the version is another one. After an error it may or may
	// not have been written, or may be yet. No version is ever used twice.
	Swap(ctx context.Context, old string, next []byte) (version string, swapped bool, err error)
}

var (
	errStoreBusy = errors.New("an earlier call has not returned yet")
	errStoreLeft = errors.New("the call ended its goroutine")
)

// clerk calls the Membership of one life, for all domains: one call after the other.
type clerk struct {
	life    context.Context // of the replica
	end     context.CancelFunc
	records pair
	timeout time.Duration
	turn    chan struct{} // holds one while a call is under way
	busy    atomic.Bool   // a call has not returned, perhaps one that is not under way any more
}

func newClerk(store Membership, timeout time.Duration) *clerk {
	life, end := context.WithCancel(context.Background())
	return &clerk{life: life, end: end, records: pair{store: store}, timeout: timeout, turn: make(chan struct{}, 1)}
}

// call runs f, and answers once with its event or, if it has none in time, with that of an error.
// It answers nobody after the end of the life.
func (k *clerk) call(f func(context.Context) core.Event, failed func(error) core.Event, answer func(core.Event)) {
	go func() {
		select {
		case k.turn <- struct{}{}:
			defer func() { <-k.turn }()
		case <-k.life.Done():
			return
		}
		ctx, cancel := context.WithTimeout(k.life, k.timeout)
		defer cancel()
		done := make(chan core.Event, 1)
		if k.busy.CompareAndSwap(false, true) {
			go k.guarded(ctx, f, failed, done)
		} else {
			done <- failed(errStoreBusy)
		}
		var ev core.Event
		select {
		case ev = <-done:
		case <-ctx.Done():
			ev = failed(fmt.Errorf("no answer within %v: %w", k.timeout, ctx.Err()))
		}
		if k.life.Err() == nil {
			answer(ev)
		}
	}()
}

func (k *clerk) guarded(ctx context.Context, f func(context.Context) core.Event, failed func(error) core.Event, done chan<- core.Event) {
	ev := failed(errStoreLeft)
	defer func() {
		if p := recover(); p != nil {
			ev = failed(fmt.Errorf("it panicked: %v", p))
		}
		k.busy.Store(false)
		done <- ev
	}()
	ev = f(ctx)
}

func (k *clerk) load(line int, e core.LoadRecord, answer func(core.Event)) {
	k.call(func(ctx context.Context) core.Event {
		record, version, err := k.records.load(ctx, line)
		return core.RecordLoaded{ID: e.ID, Record: record, Version: version, Err: err}
	}, func(err error) core.Event { return core.RecordLoaded{ID: e.ID, Err: err} }, answer)
}

func (k *clerk) swap(line int, e core.SwapRecord, answer func(core.Event)) {
	k.call(func(ctx context.Context) core.Event {
		version, swapped, err := k.records.swap(ctx, line, e.Old, e.Next)
		return core.RecordSwapped{ID: e.ID, Version: version, Swapped: swapped, Err: err}
	}, func(err error) core.Event { return core.RecordSwapped{ID: e.ID, Err: err} }, answer)
}

// recorded brings the actor what the store has answered a domain.
type recorded struct {
	d     *domain
	event core.Event
}

// callStore asks the store, which answers with a message.
func (a *replica) callStore(d *domain, e core.Effect) {
	root, self := a.l.system.Root, a.ctx.Self()
	answer := func(ev core.Event) { root.Send(self, &recorded{d, ev}) }
	switch e := e.(type) {
	case core.LoadRecord:
		a.clerk.load(d.line(), e, answer)
	case core.SwapRecord:
		a.clerk.swap(d.line(), e, answer)
	}
}

func (d *domain) troubled(e core.Troubled) {
	if e.Err != nil {
		d.log.Error("the record of the membership cannot be used; this member goes on, but until that is mended none can start, leave or be forgotten",
			slog.Any("error", e.Err))
		return
	}
	d.log.Info("the record of the membership can be used again")
}

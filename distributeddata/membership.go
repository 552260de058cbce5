package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/contain"
)

// Membership keeps the record of the members that majorities are counted over, in a store outside
// the cluster. The record has at most 128 KiB and is replaced by compare-and-set. A
// *coordination.Document is a Membership. See Config.Membership.
//
// The replicator makes one call at a time, in a separate goroutine. A call fails if it panics,
// exits its goroutine or takes longer than Config.OperationTimeout. No other call is made until
// that call has returned.
type Membership interface {
	// Load returns the record and its version; the version is empty if there is no record. The
	// answer is no older than the call: it reflects every Swap that returned before.
	Load(ctx context.Context) (record []byte, version string, err error)
	// Swap writes next if the version is still old, which is empty for no record, and returns the
	// new version. If the version is another one, swapped is false and err is nil. After an error
	// the record may or may not have been written, and may still be written later. No version is
	// ever used twice.
	Swap(ctx context.Context, old string, next []byte) (version string, swapped bool, err error)
}

var (
	errStoreBusy = errors.New("an earlier call has not returned yet")
	errStoreLeft = errors.New("the call exited its goroutine")
)

// recordUpdater makes the calls to the Membership in one incarnation, for all domains, one call at
// a time.
type recordUpdater struct {
	ended   context.Context // done when the incarnation ends
	end     context.CancelFunc
	records pair
	timeout time.Duration
	turn    chan struct{} // holds one element while a call is in flight
	busy    atomic.Bool   // a call has not returned; it may have timed out already
}

func newRecordUpdater(store Membership, timeout time.Duration) *recordUpdater {
	ended, end := context.WithCancel(context.Background())
	return &recordUpdater{ended: ended, end: end, records: pair{store: store}, timeout: timeout,
		turn: make(chan struct{}, 1)}
}

// call runs f and passes its event to answer once. If f has no event in time, answer gets the event
// of an error. After the end of the incarnation call does not answer.
func (k *recordUpdater) call(f func(context.Context) core.Event, failed func(error) core.Event,
	answer func(core.Event)) {
	go func() {
		select {
		case k.turn <- struct{}{}:
			defer func() { <-k.turn }()
		case <-k.ended.Done():
			return
		}
		ctx, cancel := context.WithTimeout(k.ended, k.timeout)
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
		if k.ended.Err() == nil {
			answer(ev)
		}
	}()
}

func (k *recordUpdater) guarded(ctx context.Context, f func(context.Context) core.Event,
	failed func(error) core.Event, done chan<- core.Event) {
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

func (k *recordUpdater) load(line int, e core.LoadRecord, answer func(core.Event)) {
	k.call(func(ctx context.Context) core.Event {
		record, version, err := k.records.load(ctx, line)
		return core.RecordLoaded{ID: e.ID, Record: record, Version: version, Err: err}
	}, func(err error) core.Event { return core.RecordLoaded{ID: e.ID, Err: err} }, answer)
}

func (k *recordUpdater) swap(line int, e core.SwapRecord, answer func(core.Event)) {
	k.call(func(ctx context.Context) core.Event {
		version, swapped, err := k.records.swap(ctx, line, e.Old, e.Next)
		return core.RecordSwapped{ID: e.ID, Version: version, Swapped: swapped, Err: err}
	}, func(err error) core.Event { return core.RecordSwapped{ID: e.ID, Err: err} }, answer)
}

// recorded carries the store's answer for a domain to the actor.
type recorded struct {
	d     *domain
	event core.Event
}

// callStore calls the membership store, whose result arrives as a message.
func (a *replica) callStore(d *domain, e core.Effect) {
	system, self := a.l.system, a.ctx.Self()
	answer := func(ev core.Event) { contain.Send(system, self, &recorded{d, ev}) }
	switch e := e.(type) {
	case core.LoadRecord:
		a.recordUpdater.load(d.line(), e, answer)
	case core.SwapRecord:
		a.recordUpdater.swap(d.line(), e, answer)
	}
}

func (d *domain) troubled(e core.Troubled) {
	if e.Err != nil {
		d.log.Error("the membership record cannot be used; this member continues, but until the record is repaired no member can start, leave or be forgotten",
			slog.Any("error", e.Err))
		return
	}
	d.log.Info("the membership record can be used again")
}

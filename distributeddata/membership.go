package distributeddata

import (
	"bytes"
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

// clerk calls the Membership of one life.
type clerk struct {
	life    context.Context // of the replica
	end     context.CancelFunc
	store   Membership
	timeout time.Duration
	busy    atomic.Bool
}

func newClerk(store Membership, timeout time.Duration) *clerk {
	life, end := context.WithCancel(context.Background())
	return &clerk{life: life, end: end, store: store, timeout: timeout}
}

// call runs f, and answers once with its event or, if it has none in time, with that of an error.
// It answers nobody after the end of the life.
func (k *clerk) call(f func(context.Context) core.Event, failed func(error) core.Event, answer func(core.Event)) {
	go func() {
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

func (k *clerk) load(e core.LoadRecord, answer func(core.Event)) {
	k.call(func(ctx context.Context) core.Event {
		record, version, err := k.store.Load(ctx)
		if len(record) > core.MaxRecord { // refused all the same: it need not be kept whole
			record = record[:core.MaxRecord+1]
		}
		return core.RecordLoaded{ID: e.ID, Record: bytes.Clone(record), Version: version, Err: err}
	}, func(err error) core.Event { return core.RecordLoaded{ID: e.ID, Err: err} }, answer)
}

func (k *clerk) swap(e core.SwapRecord, answer func(core.Event)) {
	k.call(func(ctx context.Context) core.Event {
		version, swapped, err := k.store.Swap(ctx, e.Old, bytes.Clone(e.Next))
		if err == nil && swapped && version == "" {
			err = errors.New("it has written, and returned no version")
		}
		return core.RecordSwapped{ID: e.ID, Version: version, Swapped: swapped, Err: err}
	}, func(err error) core.Event { return core.RecordSwapped{ID: e.ID, Err: err} }, answer)
}

// recorded brings the actor what the store has answered.
type recorded struct{ event core.Event }

// callStore asks the store, which answers with a message.
func (a *replica) callStore(e core.Effect) {
	root, self := a.l.system.Root, a.ctx.Self()
	answer := func(ev core.Event) { root.Send(self, &recorded{ev}) }
	switch e := e.(type) {
	case core.LoadRecord:
		a.clerk.load(e, answer)
	case core.SwapRecord:
		a.clerk.swap(e, answer)
	}
}

func (a *replica) troubled(e core.Troubled) {
	if e.Err != nil {
		a.log.Error("the record of the membership cannot be used; this member goes on, but until that is mended none can start, leave or be forgotten",
			slog.Any("error", e.Err))
		return
	}
	a.log.Info("the record of the membership can be used again")
}

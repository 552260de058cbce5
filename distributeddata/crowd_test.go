package distributeddata_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// While an update occupies the replicator, others arrive.
func crowded(t *testing.T, dd *distributeddata.Replicator, arrive func()) {
	t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = cart.Update(context.Background(), dd, func(w *crdt.Writer, v *items) error {
			close(entered)
			<-release
			v.Add(w, "first")
			return nil
		}, local)
	}()
	<-entered
	arrive()
	close(release)
	time.Sleep(time.Second)
	synctest.Wait()
}

// Updates that wait are committed together, and answered then, in order. Each sees those before it,
// and each value is that of its own update.
func TestCrowd_UpdatesThatWaitShareACommit(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		a := &asker{}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		as := sender{system, pid}
		during := ""
		crowded(t, dd, func() {
			dd.Request(as, cart.UpdateMessage(addTo("b"), local))
			dd.Request(as, cart.UpdateMessage(func(*crdt.Writer, *items) error {
				runtime.Goexit()
				return nil
			}, local))
			dd.Request(as, cart.UpdateMessage(addTo("c"), local))
			dd.Request(as, distributeddata.NewKey(strings.Repeat("x", 1000), items{}).UpdateMessage(
				addTo("y"), local))
			dd.Request(as, cart.UpdateMessage(addTo("d"), local))
			dd.Request(as, cart.UpdateMessage(func(*crdt.Writer, *items) error {
				return errors.New("no")
			}, local))
			dd.Request(as, cart.UpdateMessage(func(w *crdt.Writer, v *items) error {
				now, err := cart.Get(context.Background(), dd)
				require.NoError(t, err)
				during = now.String() + " beside " + v.String()
				return addTo("e")(w, v)
			}, local))
			dd.Request(as, cart.GetMessage())
		})
		require.Equal(t, "{b c d first} beside {b c d first}", during)
		for i, s := range a.got {
			a.got[i] = strings.ReplaceAll(typeless(s), strings.Repeat("x", 1000), "long")
		}
		require.Equal(t, []string{
			"UpdateResponse cart success <nil> {b first}",
			"UpdateResponse cart refused <nil>",
			"UpdateResponse cart success <nil> {b c first}",
			"UpdateResponse long failed <nil>",
			"UpdateResponse cart success <nil> {b c d first}",
			"UpdateResponse cart refused <nil>",
			"UpdateResponse cart success <nil> {b c d e first}",
			"GetResponse cart success <nil> {b c d e first}",
		}, a.got)
	})
}

// A single caller waits for nobody, and what several wait for comes at once: no time passes.
func TestCrowd_NobodyWaits(t *testing.T) {
	early(t, func(t *testing.T, _ *actor.ActorSystem, dd *distributeddata.Replicator, up func()) {
		up()
		begin := time.Now()
		for range 100 {
			_, err := cart.Update(context.Background(), dd, addTo("a"), local)
			require.NoError(t, err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 20 {
					v, err := cart.Update(context.Background(), dd, addTo("b"), local)
					require.NoError(t, err)
					now, err := cart.Get(context.Background(), dd)
					require.NoError(t, err)
					require.LessOrEqual(t, v.Len(), now.Len(), "the update can be read")
				}
			})
		}
		all.Wait()
		require.Zero(t, time.Since(begin))
	})
}

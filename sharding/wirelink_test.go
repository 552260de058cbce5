package sharding

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/sharding/internal/core"
)

// batches counts the batches that reach an receiver.
type batches struct{ atomic.Int64 }

func (b *batches) SendUserMessage(*actor.PID, any)   { b.Add(1) }
func (b *batches) SendSystemMessage(*actor.PID, any) {}
func (b *batches) Stop(*actor.PID)                   {}

// Callers that are ready to send at the same time share batches, although none of them waits.
func TestLink_ThoseWhoAreReadyShareABatch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var got batches
	l := &binding{system: actor.NewActorSystem(), cfg: Config{Type: "cart"}}
	l.view.Store(&membership.View{})
	_, ok := l.system.ProcessRegistry.Add(&got, l.cfg.receiverName())
	require.True(t, ok)
	k := newLink(l, core.Member{Address: l.system.Address()})

	const callers = 200
	var all sync.WaitGroup
	for range callers {
		all.Go(func() { k.add(&wireMessage{entity: "x"}, 0) })
	}
	all.Wait()
	k.close()
	require.Positive(t, got.Load())
	// The scheduler lets the sender run after at most 61 others.
	require.Less(t, got.Load(), int64(callers/10))
}

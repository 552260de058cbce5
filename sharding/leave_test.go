package sharding_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/internal/core"
)

// reported collects the texts that become dead letters at some members.
type reported struct {
	mu    sync.Mutex
	texts []string
}

func (r *reported) at(n *node) {
	n.System.EventStream.Subscribe(func(ev any) {
		if d, ok := ev.(*actor.DeadLetterEvent); ok {
			_, msg, _ := actor.UnwrapEnvelope(d.Message)
			if text, ok := msg.(*wrapperspb.StringValue); ok {
				r.mu.Lock()
				r.texts = append(r.texts, text.Value)
				r.mu.Unlock()
			}
		}
	})
}

func (r *reported) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.texts)
}

// A member leaves. Meanwhile it sends messages to all shards, in its last moments from several
// goroutines, until Tell returns an error: each message that was accepted is handled once, or
// becomes a dead letter and is counted.
func TestLeave_AcceptedMessagesAreHandledOrReported(t *testing.T) {
	var mu sync.Mutex
	accepted, refused := map[string]bool{}, 0
	var dead reported
	tell := func(n *node, text string) error {
		err := n.region.Ref(fmt.Sprint("e", len(text)*7, text[len(text)-1:])).Tell(
			wrapperspb.String(text))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			accepted[text] = true
		} else {
			refused++
		}
		return err
	}
	var c *testCluster
	var senders sync.WaitGroup
	left := -1 // shards to give up; below 0: it does not leave
	plant := func(effect any) {
		if e, ok := effect.(core.Tell); !ok || left <= 0 {
			return
		} else if _, ok := e.Message.(core.Free); !ok {
			return
		}
		if left--; left > 0 {
			return
		}
		var begun sync.WaitGroup
		for g := range 8 {
			begun.Add(1)
			senders.Go(func() {
				_ = tell(c.node(0), fmt.Sprint("first", g))
				begun.Done()
				for k := range 20_000 {
					if tell(c.node(0), fmt.Sprintf("g%d-%d", g, k)) != nil {
						return
					}
					runtime.Gosched()
				}
			})
		}
		begun.Wait()
	}
	o := options{plant: plant, setup: func(n *node) { dead.at(n) }}
	run(t, 3, o, func(cluster *testCluster) {
		c = cluster
		c.settled(20*time.Second, c.all()...)
		left = c.node(0).region.Status().Count(sharding.Active)
		require.NoError(t, c.node(0).leave(20*time.Second))
		senders.Wait()
		time.Sleep(5 * time.Second)
		outcomes := map[string]int{}
		for _, note := range c.alive.notes("") {
			_, text, _ := strings.Cut(note, " ")
			outcomes[text]++
		}
		for _, text := range dead.all() {
			outcomes[text]++
		}
		lost, twice := 0, 0
		for text := range accepted {
			switch outcomes[text] {
			case 0:
				lost++
			case 1:
			default:
				twice++
			}
		}
		t.Logf("%d accepted, %d dead letters, %d lost, %d with two outcomes", len(accepted),
			len(dead.all()), lost, twice)
		require.Greater(t, len(accepted), 8)
		require.Zero(t, lost, "accepted, and neither handled nor reported")
		require.Zero(t, twice)
		require.EqualValues(t, len(dead.all())+refused, c.node(0).region.Stats().Refused)
	})
}

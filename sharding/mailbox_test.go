package sharding

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/concord-go/concord/coordination"
)

// hourglass is a tenure that ends after a number of checks.
type hourglass struct{ left int }

func (h *hourglass) Token() coordination.Token { return 1 }
func (h *hourglass) Context() context.Context  { return context.Background() }
func (h *hourglass) Check() error {
	if h.left--; h.left < 0 {
		return coordination.ErrLost
	}
	return nil
}

// noted is an actor that notes its messages.
type noted struct{ handled []any }

func (n *noted) InvokeSystemMessage(any)       {}
func (n *noted) InvokeUserMessage(m any)       { n.handled = append(n.handled, m) }
func (n *noted) EscalateFailure(reason, _ any) { panic(reason) }

// S2: a process that was paused goes on with its mailboxes before any timer has told it that the
// lease is over. Each message is checked against the clock, so none is handled any more.
func TestMailbox_HandlesNothingWhenTheTenureIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &incarnation{id: "x", tenure: &held{&hourglass{left: 2}}}
		in.box.incarnation = in
		n := &noted{}
		in.box.RegisterHandlers(n, nil)
		for _, m := range []string{"a", "b", "c", "d"} {
			if !in.box.enqueue(queued{message: m, from: slot}) {
				t.Fatal("the mailbox is closed")
			}
		}
		in.box.Start()
		synctest.Wait()
		if want := []any{"a", "b"}; !slices.Equal(n.handled, want) {
			t.Errorf("%v were handled, want %v", n.handled, want)
		}
		left, dead := in.box.close()
		if len(left) != 2 || left[0].Value != "c" || left[1].Value != "d" || len(dead) > 0 {
			t.Errorf("left are %v and %v", left, dead)
		}
	})
}

// A mailbox that has used the memory of another handles its messages in order. An idle mailbox
// keeps memory for few messages, and none once enough others have become idle after it.
func TestMailbox_SharesItsMemoryWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hostedShard{binding: &binding{}}
		var first *incarnation
		for k := range len(s.binding.warm.boxes) + 1 {
			var want []any
			in := &incarnation{shard: s, id: "x", tenure: &held{&hourglass{left: math.MaxInt}}}
			if k == 0 {
				first = in
			}
			in.box.incarnation = in
			n := &noted{}
			in.box.RegisterHandlers(n, nil)
			for i := range []int{1, 10 * few}[k%2] {
				want = append(want, i)
				if !in.box.enqueue(queued{message: i, from: slot}) {
					t.Fatal("the mailbox is closed")
				}
			}
			in.box.Start()
			synctest.Wait()
			if !slices.Equal(n.handled, want) {
				t.Fatalf("%v were handled, want %v", n.handled, want)
			}
			if l := in.box.load; l != nil && cap(l.user)+cap(l.batch.items) > few {
				t.Errorf("the idle mailbox has room for more than %d messages", few)
			}
		}
		if first.box.load != nil {
			t.Error("the mailbox that has been idle longest keeps memory for messages")
		}
	})
}

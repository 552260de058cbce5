package distributeddata

import (
	"runtime"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Updates of several callers that wait in the mailbox are committed and answered together [R7d]. A
// mailbox is mostly empty, though, even if many actors send to it: each message wakes the
// replicator, which has handled it before the next sender gets to run. So the replicator lets
// runnable goroutines run before it commits, if the updates committed last were of several callers.
// To find out whether there are several, it does so once in probeEvery updates.

// crowd records whether several callers send updates.
type crowd struct {
	seen   bool // the updates committed last were of several callers
	single int  // updates since the last probe
}

// probeEvery is the number of updates of a single caller for one of which the replicator looks for
// others.
const probeEvery = 32

// more reports whether another message will be handled right after this one.
func (a *replica) more() bool { return a.mailbox.UserMessageCount() > 0 }

// expectsMore reports whether the update being handled should wait for others.
func (a *replica) expectsMore() bool {
	if a.crowd.seen || a.more() {
		return true
	}
	a.crowd.single++
	return a.crowd.single%probeEvery == 0
}

// handled is called when a message has been handled. If no other follows, it commits the updates
// that wait for others.
func (a *replica) handled() {
	if a.stopped { // the next life may have the cores already
		return
	}
	waiting := 0
	for _, d := range a.domains {
		if d.core != nil {
			waiting += d.core.Unanswered()
		}
	}
	if waiting == 0 || a.more() {
		return
	}
	if runtime.Gosched(); a.more() {
		return
	}
	a.crowd.seen = waiting > 1
	a.settle()
}

// settle commits the updates that wait for others.
func (a *replica) settle() {
	for _, d := range a.domains {
		if d.core != nil && d.core.Unanswered() > 0 {
			d.step(core.End{})
		}
	}
}

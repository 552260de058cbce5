package distributeddata

import (
	"runtime"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Updates of several callers that the front cannot make, and that wait in the mailbox, are
// committed and answered together [R11]. A mailbox is mostly empty, though, even if many actors
// send to it: each message wakes the replicator, which has handled it before the next sender gets
// to run. So the replicator lets runnable goroutines run before it commits.

// more reports whether another message will be handled right after this one.
func (a *replica) more() bool { return a.mailbox.UserMessageCount() > 0 }

// handled is called when a message has been handled. If no other follows, it commits the updates
// that wait for others. The open events of the front are committed when their time has come.
func (a *replica) handled() {
	if a.stopped || a.broken { // if stopped, the next incarnation may have the cores already
		return
	}
	a.commitOpen()
	if !slices.ContainsFunc(a.domains, (*domain).unanswered) || a.more() {
		return
	}
	if runtime.Gosched(); !a.more() {
		a.settle()
	}
}

// settle commits the updates that wait for others.
func (a *replica) settle() {
	for _, d := range a.domains {
		if d.unanswered() {
			d.step(core.End{})
		}
	}
}

// unanswered reports whether callers wait for the open events to be committed.
func (d *domain) unanswered() bool { return d.core != nil && d.core.Unanswered() > 0 }

package distributeddata

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
)

// The histogram of convergence is measured by the member that makes an update: from the commit
// here to the moment at which enough counted members have confirmed that they cover it. Members
// confirm every update that is sent to them, so this adds nothing to messages, and it compares two
// times of one clock. Updates are sampled: in each domain, and for each level, one push at a time
// is followed, at most one a second.
//
// A push is followed by an update that changes nothing. Such an update waits until others cover
// what it has observed, which is what was just pushed.

// followed are the levels whose convergence is measured.
var followed = [...]Consistency{Majority, All}

// followPause is the shortest time between the starts of two samples, and followLimit the longest
// time that a sample is followed.
const followPause, followLimit = time.Second, time.Hour

// followID marks the ids of samples, which are not pending operations.
const followID = 1 << 63

// convergence measures the updates of a domain.
type convergence struct {
	samples [len(followed)]sample
	options [len(followed)]metric.MeasurementOption
	last    uint64    // id of the last sample
	since   time.Time // commit of the oldest update that has not been pushed; zero: there is none
	events  uint64    // own events so far
	applied uint64    // events of others so far
	mixed   bool      // the last step applied events of others
}

// sample is a push that is being followed.
type sample struct {
	id    uint64 // 0: none
	began time.Time
	next  time.Time // no new sample before this time
}

// note records what a step has done.
func (d *domain) note(s core.Stats) {
	c := &d.convergence
	if s.Events > c.events && c.since.IsZero() && len(d.a.address) > 0 {
		c.since = d.shell.Now()
	}
	c.mixed = s.Applied != c.applied
	c.events, c.applied = s.Events, s.Applied
}

// follow begins to follow the push that is being sent, if it is time for a sample. After a step
// that has also applied events of others it does not, since the update would ask for these too.
func (d *domain) follow() {
	c := &d.convergence
	since := c.since
	c.since = time.Time{}
	if since.IsZero() || c.mixed || d.a.l.cfg.MinMembers == 0 {
		return
	}
	now := d.shell.Now()
	for i := range c.samples {
		s := &c.samples[i]
		if s.id != 0 || now.Before(s.next) {
			continue
		}
		c.last++
		*s = sample{id: followID | c.last, began: since, next: now.Add(followPause)}
		d.step(core.Update{
			ID: s.id, Level: followed[i].level(), Deadline: now.Add(followLimit),
			Modify: func(*history.Txn) error {
				return nil
			},
		})
	}
}

// arrived ends a sample. It reports whether the operation is one.
func (d *domain) arrived(e core.Done) bool {
	if e.ID < followID {
		return false
	}
	for i := range d.convergence.samples {
		s := &d.convergence.samples[i]
		if s.id != e.ID {
			continue
		}
		took := d.shell.Now().Sub(s.began)
		s.id = 0
		if e.Err == nil && e.Store == nil && !e.Interrupted &&
			(e.Short == nil || took >= followLimit) {
			d.converged(i, took)
		}
	}
	return true
}

// converged records a sample in the histogram.
func (d *domain) converged(i int, took time.Duration) {
	if d.a.l.convergence == nil {
		return
	}
	defer d.a.guard("measuring")
	c := &d.convergence
	if c.options[i] == nil {
		keys := "volatile"
		if d.durable {
			keys = "durable"
		}
		c.options[i] = metric.WithAttributes(
			attribute.String("replicator", d.a.l.cfg.Name),
			attribute.String("address", d.a.l.system.Address()), attribute.String("keys", keys),
			attribute.String("level", followed[i].kindName()),
		)
	}
	d.a.l.convergence.Record(context.Background(), took.Seconds(), c.options[i])
}

// followAnew forgets the samples that are being followed.
func (d *domain) followAnew() {
	d.convergence = convergence{last: d.convergence.last, options: d.convergence.options}
}

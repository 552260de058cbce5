package core

import (
	"errors"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// ErrStep rejects an update that must be made by a step: the core has a disk, or must commit the
// open events first. Nothing was done.
var ErrStep = errors.New("core: the update must be a step")

// Direct makes an update part of the open events, between two steps: it has no effects,
// and nothing that Step, Keys or Seen return shows it before an End or another event commits it
// [R12]. The caller must call it as it calls Step: never at the same time. An update that has been
// answered is never given up: see endAgain.
func (c *Core) Direct(now time.Time, key string,
	modify func(*history.Txn) error) (o history.Opened, err error) {
	if c.disk.phase != NoDisk || c.members.sealed || c.history.Hidden() || c.Full() {
		return o, ErrStep
	}
	o, size, err := c.history.Direct(now, c.cfg.Fits, key, modify)
	if size > 0 {
		c.outbox.Gather(size)
	}
	return o, err
}

// Full reports whether so much waits for a push that it must be made before more updates.
func (c *Core) Full() bool {
	return c.outbox.Gathered() > maxUnpushed || c.history.Open() >= maxOpen
}

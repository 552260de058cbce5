package distributeddata

import (
	"log/slog"
	"slices"

	"github.com/concord-go/concord/internal/wire"
)

// noteList compares what keys a member lists as durable, which its message says, with what this one lists. Where they
// differ one takes for durable what the other does not: neither takes anything of the other's durable keys.
func (a *replica) noteList(h wire.Header) {
	address, known := a.address[h.Member]
	differs := h.Keys != a.l.r.choice.sum()
	if !known || differs == a.unlike[h.Member] {
		return
	}
	if differs {
		a.unlike[h.Member] = true
		a.log.Error("a member lists other durable keys: until all list the same, its changes of durable keys are not taken, nor ours there",
			slog.String("member", address), slog.Any("here", a.l.cfg.Durable))
	} else {
		delete(a.unlike, h.Member)
		a.log.Info("a member lists the same durable keys again", slog.String("member", address))
	}
	a.noteOthers()
	a.publish()
	if a.durable != nil {
		a.durable.view = nil
		a.durable.catchUp()
	}
}

// noteOthers finds the addresses of the members that list other durable keys. Those out of view are forgotten.
func (a *replica) noteOthers() {
	var all []string
	for id := range a.unlike {
		if at, known := a.address[id]; known {
			all = append(all, at)
		} else {
			delete(a.unlike, id)
		}
	}
	slices.Sort(all)
	a.others = all
}

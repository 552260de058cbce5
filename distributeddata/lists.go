package distributeddata

import (
	"log/slog"
	"slices"

	"github.com/concord-go/concord/internal/wire"
)

// noteList compares the digest of the durable keys in a member's message with the one of this
// member. If they differ, one of the two takes for durable what the other does not, so neither
// accepts changes of durable keys from the other.
func (a *replica) noteList(h wire.Header) {
	address, known := a.address[h.Member]
	differs := h.Keys != a.l.r.choice.sum()
	if !known || differs == a.unlike[h.Member] {
		return
	}
	if differs {
		a.unlike[h.Member] = true
		a.log.Error("a member lists different durable keys: until all members list the same, neither side accepts changes of durable keys from the other",
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

// noteOthers updates the addresses of the members that list other durable keys. Members out of view
// are dropped.
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

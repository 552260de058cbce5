package distributeddata

import (
	"log/slog"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/wire"
)

// noteList compares the digest of the durable keys in a member's message with the one of this
// member. If they differ, one of the two takes for durable what the other does not, so neither
// accepts changes of durable keys from the other.
func (a *replica) noteList(h wire.Header) {
	address, known := a.address[h.Member]
	differs := h.Keys != a.l.r.durableKeys.sum()
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

// noteOthers updates the addresses of the members that list other durable keys or other times to
// live. Members out of view are dropped.
func (a *replica) noteOthers() {
	a.others, a.otherExpiry = a.addressesOf(a.unlike), a.addressesOf(a.unlikeExpiry)
}

// addressesOf returns the addresses of members in order. It removes members out of view from ids.
func (a *replica) addressesOf(ids map[string]bool) (all []string) {
	for id := range ids {
		if at, known := a.address[id]; known {
			all = append(all, at)
		} else {
			delete(ids, id)
		}
	}
	slices.Sort(all)
	return all
}

// noteExpiry records that a member has begun or ceased to have another Config.Expiry.
func (a *replica) noteExpiry(e core.OtherExpiry) {
	at := slog.String("member", a.address[e.Member])
	if e.Differs {
		a.unlikeExpiry[e.Member] = true
		a.log.Error("a member has different times to live (Expiry): of two times to live of an entry the shorter counts; configure the same at all members", at)
	} else {
		delete(a.unlikeExpiry, e.Member)
		a.log.Info("a member has the same times to live again", at)
	}
	a.noteOthers()
	a.publish()
}

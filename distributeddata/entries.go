package distributeddata

import (
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// EntryInfo describes an entry for human readers and dashboards, without decoding its value.
type EntryInfo struct {
	Key string
	// Type is the type of the value as replicas encode it, for instance "ORSet[string]". It is
	// empty if the entry has no value.
	Type    string
	Durable bool
	// Gone reports that the entry is deleted or expired and holds only bookkeeping.
	Gone bool
	// Atoms is the number of live facts in the value, for instance one for each element of a set.
	Atoms int
	// Bytes is the size that Config.MaxBytes bounds.
	Bytes int
}

// Entries yields the entries whose names begin with prefix and are not before from, sorted by name.
// It starts in time logarithmic in the number of entries. The work per entry does not
// depend on the size of its value. Entries that are gone are yielded too, so that callers can
// bound the work of a page.
func (s Snapshot) Entries(prefix, from string) iter.Seq[EntryInfo] {
	return func(yield func(EntryInfo) bool) {
		for key, now := range s.p.entries(prefix, max(prefix, from)) {
			if !yield(s.info(key, now)) {
				return
			}
		}
	}
}

// Changed yields the names of the entries whose values may differ between s and an earlier snapshot
// of the same replicator, sorted. Its cost is proportional to the number of changes.
func (s Snapshot) Changed(since Snapshot) iter.Seq[string] {
	return func(yield func(string) bool) {
		if s.p == nil {
			return
		}
		for key := range s.p.changes(since.p, "") {
			if !yield(causal.Clone(key)) {
				return
			}
		}
	}
}

func (s Snapshot) info(key string, now entryView) EntryInfo {
	e := EntryInfo{
		Key: causal.Clone(key), Durable: s.p.durableKeys.durable(key), Gone: now.gone(),
		Atoms: now.store.Len(), Bytes: now.bytes,
	}
	for path := range now.store.From("") {
		if len(path) > 0 {
			e.Type = causal.Tag(path[0]).String()
		}
		break
	}
	return e
}

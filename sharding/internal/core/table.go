package core

// table is what a member knows about the assignments of all shards. Merging entries is commutative
// and idempotent: the larger version wins.
type table struct {
	entries []Assignment
	sum     uint64 // sum over all entries; equal tables have equal sums
}

func newTable(shards int) table { return table{entries: make([]Assignment, shards)} }

// merge adds an entry, and reports whether it changed the table.
func (t *table) merge(e Entry) bool {
	if e.Shard < 0 || e.Shard >= len(t.entries) || e.Home == (Member{}) {
		return false // of another type, or damaged
	}
	was := &t.entries[e.Shard]
	if !was.Version.Less(e.Version) {
		return false
	}
	t.sum += entryHash(e.Shard, e.Version) - entryHash(e.Shard, was.Version)
	*was = e.Assignment
	return true
}

// since returns the entries of an epoch after its n-th assignment, or all entries if n is 0.
func (t *table) since(epoch, n uint64) (entries []Entry) {
	for s, a := range t.entries {
		if a.Version.N != 0 && (n == 0 || a.Version.Epoch == epoch && a.Version.N > n) {
			entries = append(entries, Entry{s, a})
		}
	}
	return entries
}

// entryHash returns the hash of one entry; it is 0 for a shard that was never assigned.
func entryHash(shard int, v Version) uint64 {
	if v == (Version{}) {
		return 0
	}
	return scatter(scatter(scatter(uint64(shard))^v.Epoch) ^ v.N)
}

// hash returns the hash of a tenure; tokens rise, so a set of tenures has a sum of its own.
func (t Tenure) hash() uint64 {
	return scatter(scatter(uint64(t.Shard)) ^ t.Token)
}

// held returns the sum over a list of tenures; equal lists have equal sums.
func held(active []Tenure) (sum uint64) {
	for _, t := range active {
		sum += t.hash()
	}
	return sum
}

// scatter is the finalizer of SplitMix64.
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

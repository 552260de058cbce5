package expiry

import "encoding/binary"

// Use is what an entry records of its last use. The zero value belongs to an entry without a
// record.
type Use struct {
	At  int64 // the stamp; 0: there is none
	TTL int64 // the entry's own time to live; 0: it has none
	Set int64 // when TTL was set
}

// MaxTTL is the longest time to live: a hundred years.
const MaxTTL = 100 * 365 * 24 * 60 * 60 * 1000

// maxMoment bounds moments, so that sums with them do not overflow.
const maxMoment = 1 << 52

// Append appends the payload of an atom: the stamp and, if the entry has its own time to live, that
// time and when it was set, each as a uvarint.
func (u Use) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(max(u.At, 0)))
	if u.TTL > 0 {
		dst = binary.AppendUvarint(dst, uint64(u.TTL))
		dst = binary.AppendUvarint(dst, uint64(max(u.Set, 0)))
	}
	return dst
}

// Parse decodes the payload of an atom. A payload that no member writes counts as no stamp.
func Parse(payload string) Use {
	var v [3]uint64
	b := []byte(payload)
	i := 0
	for ; i < len(v) && len(b) > 0; i++ {
		x, n := binary.Uvarint(b)
		if n <= 0 || x > maxMoment {
			return Use{}
		}
		v[i], b = x, b[n:]
	}
	if len(b) > 0 || i == 2 || v[1] > MaxTTL {
		return Use{}
	}
	return Use{int64(v[0]), int64(v[1]), int64(v[2])}
}

// Merge merges concurrent records of two members: the later use, and the time to live that was set
// later.
func (u Use) Merge(o Use) Use {
	u.At = max(u.At, o.At)
	if o.Set > u.Set || o.Set == u.Set && o.TTL > u.TTL {
		u.TTL, u.Set = o.TTL, o.Set
	}
	return u
}

// Stale reports whether a use at now must make a new stamp: the present one is older than a quarter
// of the time to live, or so far in the future that no clock within the skew can have made it.
func (u Use) Stale(now, ttl, skew int64) bool { return now >= u.RenewAt(now, ttl, skew) }

// RenewAt returns the time from which a use must make a new stamp. It is never 0.
func (u Use) RenewAt(now, ttl, skew int64) int64 {
	if u.At > now+skew {
		return now
	}
	return u.At + max(ttl/4, 1)
}

// lasts returns how long a stamp keeps an entry.
func lasts(ttl, skew int64) int64 { return ttl + ttl/4 + skew }

// Passed reports whether an entry with the record u that is gone at now had not been used for its
// time to live.
func (u Use) Passed(now, ttl int64) bool { return u.At > 0 && ttl > 0 && now >= u.At+ttl+ttl/4 }

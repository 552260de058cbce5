package history

import "github.com/concord-go/concord/internal/causal"

// scrub is the progress of recomputing fingerprints.
type scrub struct {
	key  string // being recomputed, or the last one that was
	held Held   // its content at the beginning
	path string // path to continue from; "" before the first
	sum  Sum    // of the atoms before path
}

// Scrub recomputes the fingerprints of a part of the state, to detect memory corruption. It returns
// the number of keys whose fingerprint was wrong. This replica then reports its true fingerprint,
// and other members notice the difference. A key with many atoms takes several calls. Changes in
// between do not matter, since the content at the beginning is examined.
func (h *History) Scrub() (wrong uint64) {
	s := &h.scrub
	for left := scrubSize; left > 0; {
		if s.path == "" && !s.next(h.keys) {
			return wrong
		}
		path := s.path
		s.path = ""
		for p, e := range s.held.From(path) {
			if left <= 0 {
				s.path = causal.Clone(p)
				return wrong
			}
			s.sum = s.sum.Plus(entrySum(s.key, p, e))
			left -= 64 + len(p) + len(e.First().Payload)
		}
		left -= 64
		if s.sum != s.held.sum {
			wrong++
			h.correct(s.key, s.sum.Minus(s.held.sum)) // the error is the same, whatever has changed
		}
	}
	return wrong
}

// next advances to the next key and reports whether there is one. If not, the next round begins.
func (s *scrub) next(keys Keys) bool {
	from := s.key
	if from != "" {
		from += "\x00"
	}
	for key, h := range keys.From(from) {
		*s = scrub{key: causal.Clone(key), held: h}
		return true
	}
	*s = scrub{}
	return false
}

// scrubSize is the amount of state examined by one Scrub, roughly in bytes.
const scrubSize = 128 << 10

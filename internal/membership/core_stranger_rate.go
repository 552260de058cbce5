package membership

import "time"

// strangerRate limits the answers to members that are not listed here.
type strangerRate struct {
	settings
	since time.Time // start of the current strangerGap
	n     int       // answered in it
}

// next reports whether another one may be answered, and counts it.
func (x *strangerRate) next(now time.Time) bool {
	if now.Sub(x.since) >= x.strangerGap {
		x.since, x.n = now, 0
	}
	if x.n >= x.strangers {
		return false
	}
	x.n++
	return true
}

package membership

import "time"

const (
	defaultPatience = 2 * time.Second
	maxPatience     = 10 * time.Minute
	// freeIncarnations is the number of incarnations within an hour that do not increase the
	// patience.
	freeIncarnations = 2
)

// Tuning adapts the protocol that heals a split cluster.
type Tuning struct {
	// Patience is how long a member must continuously see that another one and it do not both list
	// each other, although they can communicate, before one of them steps down. It should be longer
	// than the time in which a provider's view settles. If neither has dropped the other yet, so
	// that there may be a join in progress, it is ten times as long. Default 2s; at most 10
	// minutes.
	Patience time.Duration
	// Incarnations is the number of incarnations of this process that have ended within the last
	// hour. From the third on, each incarnation doubles the patience, up to a minute, so that a
	// member that is repeatedly split off comes back less often.
	Incarnations int
}

// apply returns the settings with this tuning. Values out of range are clamped.
func (t Tuning) apply(s settings) settings {
	p := t.Patience
	if p <= 0 {
		p = defaultPatience
	}
	p = min(p, maxPatience)
	for n := freeIncarnations; n < t.Incarnations && p < time.Minute; n++ {
		p = min(2*p, time.Minute)
	}
	s.patience, s.joinPatience = p, 10*p
	return s
}

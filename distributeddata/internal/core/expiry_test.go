package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// dated starts a member with a digest of its times to live.
func (l *lab) dated(name string, expiry uint32) {
	l.start(name)
	l.cores[name].cfg.Expiry = expiry
}

// R24: members with different times to live name each other once, however many heartbeats follow,
// and no longer once a restarted member has the same.
func TestExpiry_DifferentTimesAreNamedOnce(t *testing.T) {
	for _, lost := range []bool{false, true} {
		l := emptyLab(t, 0, []string{"a", "b", "c"})
		l.dated("a", 7)
		l.dated("b", 7)
		l.dated("c", 0)
		l.meet()
		if lost {
			// the vectors are equal, so nothing but the question of a and b brings another one
			for _, c := range l.cores {
				for _, p := range c.peers {
					p.expiry, p.dated = c.cfg.Expiry, false
				}
			}
			l.alarms = nil
		}
		l.pass(10 * time.Second)
		named := map[string][]OtherExpiry{}
		for _, a := range l.alarms {
			if e, ok := a.what.(OtherExpiry); ok {
				named[a.at] = append(named[a.at], e)
			}
		}
		want := map[string][]OtherExpiry{"a": {{"c", true}}, "b": {{"c", true}},
			"c": {{"a", true}, {"b", true}}}
		if lost {
			delete(want, "c") // it has no times, and does not ask for those of others
			delete(named, "c")
		}
		require.Equal(t, want, named)

		l.alarms = nil
		l.dated("c", 7)
		l.meet()
		l.pass(10 * time.Second)
		named = map[string][]OtherExpiry{}
		for _, a := range l.alarms {
			if e, ok := a.what.(OtherExpiry); ok {
				named[a.at] = append(named[a.at], e)
			}
		}
		require.Equal(t, map[string][]OtherExpiry{"a": {{"c", false}}, "b": {{"c", false}}}, named)
	}
}

// Heartbeats without a vector do not tell the times, so they cost nothing at rest.
func TestExpiry_TakesNoBytesAtRest(t *testing.T) {
	size := func(expiry uint32) (bytes int) {
		l := emptyLab(t, 0, []string{"a", "b"})
		l.dated("a", expiry)
		l.dated("b", expiry)
		l.meet()
		l.pass(10 * time.Second)
		l.beat("a")
		for _, m := range l.take(of(wire.ReplicatorBeat)) {
			bytes += len(m.send.Payload)
		}
		require.Positive(t, bytes)
		return bytes
	}
	require.Equal(t, size(0), size(7))
}

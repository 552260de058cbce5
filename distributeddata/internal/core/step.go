package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// step is the time of a step, and what it has done so far. The parts of a core that do something
// are handed the step, and add to its effects.
type step struct {
	now     time.Time
	begun   history.Keys // the keys when it began
	taking  Event        // its event, if that hands over a state
	effects []Effect
	touched []string // keys that it has changed
	// restored: another member has other own events of this replica, which must begin anew [R4].
	restored bool
	ids      ids
	stats    Stats              // since the start
	reach    func(place string) // see Config.Reach
}

// note records a change of the history, which has seen so much now.
func (s *step) note(ch history.Change, seen causal.Vector, b *vectors) {
	s.touched = append(s.touched, ch.Keys...)
	s.stats.Events += uint64(ch.Own)
	s.stats.Applied += uint64(ch.Applied)
	if ch.Skipped || ch.Applied > bases.MaxDiffering {
		b.Risen(s.now, seen)
	}
}

// emit adds an effect, if there is one.
func (s *step) emit(e Effect) {
	if e == nil {
		return
	}
	if s.reach != nil {
		s.reach("effect")
	}
	s.effects = append(s.effects, e)
}

func (s *step) send(p *peer, m wire.Manifest, payload []byte) {
	s.emit(Send{Member: p.ID, To: p.replica, Manifest: m, Payload: payload})
}

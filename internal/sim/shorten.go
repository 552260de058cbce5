package sim

// Limits for shortening a failing history: the number of replays and of steps.
const (
	mostPlays = 2000
	mostWork  = 1_500_000
)

// shortener searches for the smallest case that fails in the same way.
type shortener struct {
	history     func(*World)
	kind        string
	best        *Case
	plays, work int // remaining
}

// shorten removes everything from a case that is not needed for its failure. It returns nil if the
// case does not fail when it is played: then the history depends on something outside the world.
func shorten(c *Case, kind string, history func(*World)) *Case {
	s := &shortener{history, kind, c, mostPlays, mostWork}
	if !s.try(c) {
		return nil
	}
	for before := -1; before != s.best.Size() && s.goesOn(); {
		before = s.best.Size()
		s.withoutActs()
		s.withoutFates()
		s.withoutPicks()
	}
	return s.best
}

func (s *shortener) goesOn() bool { return s.plays > 0 && s.work > 0 }

// try plays a case and, if it fails in the same way, keeps the parts that were used.
func (s *shortener) try(c *Case) bool {
	w := newWorld(0, c)
	w.tape = newCase()
	w.play(s.history)
	s.plays--
	s.work -= w.steps
	if !w.Failed() || w.kind != s.kind {
		return false
	}
	s.best = w.tape
	return true
}

// chunks calls leaveOut with ranges of n things: all, halves, quarters, and so on down to single
// ones.
func (s *shortener) chunks(n int, leaveOut func(from, to int)) {
	for size := n; size >= 1; size /= 2 {
		for from := 0; from < n && s.goesOn(); from += size {
			leaveOut(from, min(from+size, n))
		}
	}
}

func (s *shortener) withoutFates() {
	letters := s.best.letters()
	s.chunks(len(letters), func(from, to int) {
		c := s.best.clone()
		for _, l := range letters[from:to] {
			delete(c.fates, l)
		}
		if c.Size() < s.best.Size() {
			s.try(c)
		}
	})
}

func (s *shortener) withoutPicks() {
	ids := s.best.pickIDs()
	s.chunks(len(ids), func(from, to int) {
		c := s.best.clone()
		for _, id := range ids[from:to] {
			delete(c.picks, id)
		}
		if c.Size() < s.best.Size() {
			s.try(c)
		}
	})
}

func (s *shortener) withoutActs() {
	all := s.best.acts
	gone := make([]bool, len(all))
	s.chunks(len(all), func(from, to int) {
		c := s.best.clone()
		c.acts = nil
		for i, a := range all {
			if !gone[i] && (i < from || i >= to) {
				c.acts = append(c.acts, a)
			}
		}
		if len(c.acts) < len(s.best.acts) && s.try(c) {
			for i := from; i < to; i++ {
				gone[i] = true
			}
		}
	})
}

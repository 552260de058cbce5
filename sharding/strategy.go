package sharding

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/sharding/internal/core"
)

// Layout is the argument of Config.Strategy: the members that can host now, and the homes of the
// shards.
type Layout struct {
	Type  string
	Hosts []Host   // in the order of the cluster's view, the same for equal views
	Homes []string // id of the member that each shard should be on, by shard number; empty: none
}

// Host is a member that can host shards.
type Host struct{ ID, Address string }

func layoutOf(typ string, e core.Consult) Layout {
	l := Layout{Type: typ}
	for _, m := range e.Hosts {
		l.Hosts = append(l.Hosts, Host{m.ID, m.Address})
	}
	for _, m := range e.Homes {
		l.Homes = append(l.Homes, m.ID)
	}
	return l
}

// chosen is the answer of Config.Strategy to one question.
type chosen core.Overrides

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*chosen) IgnoreDeadLetterLogging() {}

// consult calls Config.Strategy in its own goroutine and sends the coordinator at to exactly one
// answer, even if the function panics or ends the goroutine. A function that does not return blocks
// the goroutine, and is not called again meanwhile.
func (l *binding) consult(to *actor.PID, e core.Consult) {
	answer := &chosen{Round: e.Round}
	log := func() *slog.Logger { return l.log }
	end := l.choosing.Begin(log, "Config.Strategy", "shards stay where they are")
	err := contained(func() error {
		answer.Homes = maps.Clone(l.cfg.Strategy(layoutOf(l.cfg.Type, e)))
		return mistakes(answer.Homes, e)
	})
	end()
	if err != nil {
		if n, due := l.mistakes.Due(l.clock.Now()); due {
			l.log.Warn("Strategy failed: its invalid choices are ignored", slog.Any("error", err),
				slog.Uint64("failed", n))
		}
	}
	contain.Send(l.system, to, answer)
}

// mistakes returns an error that describes the first part of an answer that is ignored.
func mistakes(homes map[int]string, e core.Consult) error {
	for _, s := range slices.Sorted(maps.Keys(homes)) {
		name := homes[s]
		switch {
		case s < 0 || s >= len(e.Homes):
			return fmt.Errorf("it names shard %d, it must be from 0 to %d", s, len(e.Homes)-1)
		case name != "" && !slices.ContainsFunc(e.Hosts, func(m core.Member) bool {
			return m.ID == name || m.Address == name
		}):
			return fmt.Errorf("it names %.80q for shard %d, which cannot host", name, s)
		}
	}
	return nil
}

package distributeddata

import (
	"fmt"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Consistency says how many replicas, this one included, must take part before an operation succeeds.
// The zero value is Local.
//
// A write at a level is on so many replicas when it succeeds. A read at a level returns a value that
// contains every write that so many replicas knew of when they were asked; so a Majority read sees
// every Majority write that succeeded before it began. Levels are counted in the members that the cluster remembers,
// see the package comment, and in at least Config.MinMembers.
type Consistency uint32

// The levels without parameters. See also Nodes.
const (
	Local    Consistency = iota // this replica only: reads never wait, writes spread in the background
	Majority                    // more than half of the replicas
	All                         // every replica
	// Linearizable is for reads: as Majority, and what is returned is on a majority before it is, so
	// that no read at this level that begins later can miss any of it. It costs a second round trip
	// while writes are under way. A write at this level is one at Majority.
	Linearizable
	nodes
)

const (
	plusShift  = 4
	plusMax    = 1<<12 - 1
	nodesShift = 16
	nodesMax   = 1<<16 - 1
)

// Nodes asks for n replicas, this one included; n from 2 to 65535.
func Nodes(n int) Consistency { return nodes | Consistency(clamp(n, nodesMax))<<nodesShift }

// Plus asks for n replicas beyond a majority, up to all; n from 0 to 4095. It changes Majority only.
func (c Consistency) Plus(n int) Consistency {
	if c.kind() != Majority {
		return c
	}
	return c&^(plusMax<<plusShift) | Consistency(clamp(n, plusMax))<<plusShift
}

// AtLeast raises a majority in small clusters to n replicas, up to all; n from 0 to 65535. It changes
// Majority only.
func (c Consistency) AtLeast(n int) Consistency {
	if c.kind() != Majority {
		return c
	}
	return c&^(nodesMax<<nodesShift) | Consistency(clamp(n, nodesMax))<<nodesShift
}

func clamp(n, limit int) int { return max(0, min(n, limit)) }

func (c Consistency) kind() Consistency { return c & (1<<plusShift - 1) }
func (c Consistency) plus() int         { return int(c>>plusShift) & plusMax }
func (c Consistency) count() int        { return int(c >> nodesShift) }

// validate says what is wrong with a level, if anything.
func (c Consistency) validate() error {
	if c.kind() > nodes || c.kind() == nodes && c.count() < 2 {
		return fmt.Errorf("%w: consistency %v: want Local, Majority, All, Linearizable or Nodes of 2 and more", ErrInvalid, c)
	}
	return nil
}

func (c Consistency) level() core.Level {
	switch c.kind() {
	case Majority:
		return core.Level{Kind: core.Majority, Plus: c.plus(), Least: c.count()}
	case Linearizable:
		return core.Level{Kind: core.Linear}
	case All:
		return core.Level{Kind: core.All}
	case nodes:
		return core.Level{Kind: core.Count, Nodes: c.count()}
	}
	return core.Level{}
}

// String is the level as one would write it.
func (c Consistency) String() string {
	switch c.kind() {
	case Local:
		return "local"
	case Majority:
		s := "majority"
		if c.plus() > 0 {
			s += fmt.Sprintf("+%d", c.plus())
		}
		if c.count() > 0 {
			s += fmt.Sprintf(" of at least %d", c.count())
		}
		return s
	case All:
		return "all"
	case Linearizable:
		return "linearizable"
	case nodes:
		return fmt.Sprintf("%d nodes", c.count())
	}
	return fmt.Sprintf("Consistency(%d)", uint32(c))
}

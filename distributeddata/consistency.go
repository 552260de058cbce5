package distributeddata

import (
	"fmt"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Consistency says how many replicas, including this one, must take part before an operation
// succeeds. A write states its level: one at the zero value returns ErrInvalid. A read at the zero
// value is Local.
//
// A write that succeeds at a level is on the required number of replicas. A read at a level returns
// a value that contains every write that the required number of replicas had seen when they were
// asked, so a Majority read sees every Majority write that succeeded before it began. Levels are
// counted over the members that the cluster remembers, as the package comment describes, and over
// at least Config.MinMembers.
type Consistency uint32

// The levels without parameters. See also Nodes.
const (
	// Local is this replica only: reads never wait, writes spread in the background.
	Local Consistency = iota + 1
	// Majority is more than half of the replicas.
	Majority
	// All is every replica.
	All
	// Linearizable is for reads. It works like Majority, but a majority holds and accepts the
	// result before it is returned. So a later read at this level cannot miss any of it, and of two
	// concurrent reads one shows everything that the other shows. It costs a second round trip
	// while writes are in flight, and further ones while other reads of this level are. A write at
	// this level is a write at Majority.
	Linearizable
	nodes
)

const (
	plusShift  = 4
	plusMax    = 1<<12 - 1
	nodesShift = 16
	nodesMax   = 1<<16 - 1
)

// Nodes returns the level that requires n replicas, including this one; n is from 2 to 65535.
func Nodes(n int) Consistency { return nodes | Consistency(clamp(n, nodesMax))<<nodesShift }

// Plus returns the level that requires n replicas beyond a majority, but at most all; n is from 0
// to 4095. It changes Majority only.
func (c Consistency) Plus(n int) Consistency {
	if c.kind() != Majority {
		return c
	}
	return c&^(plusMax<<plusShift) | Consistency(clamp(n, plusMax))<<plusShift
}

// AtLeast returns the level that requires a majority and at least n replicas, but at most all; n is
// from 0 to 65535. It changes Majority only.
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

// ofRead returns the level of a read, which is Local if none is stated.
func ofRead(at []Consistency) Consistency {
	if len(at) == 0 {
		return Local
	}
	return at[len(at)-1].orLocal()
}

func (c Consistency) orLocal() Consistency {
	if c == 0 {
		return Local
	}
	return c
}

// validate returns an error if the level is not a valid one.
func (c Consistency) validate() error {
	if c == 0 {
		return fmt.Errorf("%w: no consistency level stated: "+
			"a write needs Local, Majority or another one", ErrInvalid)
	}
	if c.kind() > nodes || c.kind() == nodes && c.count() < 2 {
		return fmt.Errorf("%w: consistency %v: want Local, Majority, All, "+
			"Linearizable or Nodes of 2 and more", ErrInvalid, c)
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

// String returns the level in words, such as "majority+1".
func (c Consistency) String() string {
	switch c.kind() {
	case 0:
		return "no level"
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

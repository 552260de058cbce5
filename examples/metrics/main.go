// Command metrics shows the load of every member at every member: one map by address, in which each
// member writes its own load. The last load of a departed member stays until another removes it.
//
//	go run ./examples/metrics
//
//	node-0:1 40 %, node-1:1 55 %, node-2:1 90 %; the busiest is node-2:1
//	node-2:1 is killed
//	node-0:1 42 %, node-1:1 35 %, node-2:1 90 %; the busiest is node-2:1
//	node-0:1 removes the departed members: [node-2:1]
//	node-0:1 42 %, node-1:1 35 %; the busiest is node-0:1
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/internal/three"
)

// Percentages are the loads of members, by address. The newest value of each wins.
type Percentages = crdt.LWWMap[string, int]

// Load is the entry.
var Load = distributeddata.NewKey("load", Percentages{})

// report writes the load of this member. It does not wait for others: the next report makes up for
// a lost one.
func report(ctx context.Context, dd *distributeddata.Replicator, percent int) error {
	_, err := Load.Update(ctx, dd, func(w *crdt.Writer, load *Percentages) error {
		load.Set(w, dd.Status().Address, percent)
		return nil
	})
	return err
}

// takeOut removes the loads of missing members. Any member may do so, even several at once. A
// member that comes back reports again, and a report that was not seen here survives.
func takeOut(ctx context.Context, dd *distributeddata.Replicator) (departed []string, err error) {
	departed = dd.Status().Missing
	_, err = Load.Update(ctx, dd, func(w *crdt.Writer, load *Percentages) error {
		load.Remove(w, departed...)
		return nil
	})
	return departed, err
}

// show formats the loads in a line.
func show(load Percentages) string {
	var all []string
	busiest, most := "nobody", -1
	for member, percent := range load.All() {
		all = append(all, fmt.Sprintf("%s %d %%", member, percent))
		if percent > most {
			busiest, most = member, percent
		}
	}
	return strings.Join(all, ", ") + "; the busiest is " + busiest
}

func main() {
	if err := three.RunWithLeases(context.Background(), os.Stdout, memory.New(), setup,
		run); err != nil {
		log.Fatal(err)
	}
}

// setup adds nothing to a member.
func setup(three.Member) error { return nil }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	// known waits until member 1 has received the reports of the others.
	known := func(percent ...int) error {
		for i, p := range percent {
			if err := report(ctx, c.DD[i], p); err != nil {
				return err
			}
		}
		return three.Until(ctx, func() bool {
			load, _ := Load.Get(ctx, c.DD[0])
			heard := 0
			for i, p := range percent {
				if got, _ := load.Get(c.DD[i].Status().Address); got == p {
					heard++
				}
			}
			return heard == len(percent)
		})
	}
	tell := func() error {
		load, err := Load.Get(ctx, c.DD[0])
		if err == nil {
			fmt.Fprintln(out, show(load))
		}
		return err
	}
	if err := known(40, 55, 90); err != nil {
		return err
	}
	if err := tell(); err != nil {
		return err
	}

	fmt.Fprintln(out, c.DD[2].Status().Address, "is killed")
	c.Kill(2)
	if err := known(42, 35); err != nil {
		return err
	}
	if err := three.Until(ctx, func() bool {
		return len(c.DD[0].Status().Missing) > 0
	}); err != nil {
		return err
	}
	if err := tell(); err != nil {
		return err
	}
	departed, err := takeOut(ctx, c.DD[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, c.DD[0].Status().Address, "removes the departed members:", departed)
	return tell()
}

// Command flags implements feature flags. Every member reads them at the cost of a map lookup. They
// are written at a majority, so a change survives once the call has returned.
//
//	go run ./examples/flags
//
//	dark-mode is off at member 3
//	member 1 switches dark-mode on
//	member 3 hears that dark-mode is on
//	member 2 is cut off, and switches dark-mode off: 1 of 2 replicas
//	member 1 switches dark-mode on again
//	the network is whole again
//	dark-mode is on at member 2: on wins over a concurrent off
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/internal/three"
)

// Flags are all feature flags. Use a DWFlag where a wrong "on" is worse than a wrong "off".
var Flags = distributeddata.NewPrefix("flag-", crdt.EWFlag{})

// DarkMode is one of the flags. A Key caches the value it last read: reading it again takes
// nanoseconds.
var DarkMode = Flags.Key("dark-mode")

// on reads a flag. A flag that does not exist or cannot be read is off.
func on(dd *distributeddata.Replicator, flag distributeddata.Key[crdt.EWFlag]) bool {
	f, err := flag.Get(context.Background(), dd)
	return err == nil && f.Enabled()
}

// turn switches a flag at a majority.
func turn(ctx context.Context, dd *distributeddata.Replicator,
	flag distributeddata.Key[crdt.EWFlag], on bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := flag.Update(ctx, dd, func(w *crdt.Writer, f *crdt.EWFlag) error {
		if on {
			f.Enable(w)
		} else {
			f.Disable(w)
		}
		return nil
	}, distributeddata.Majority)
	return err
}

func word(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	fmt.Fprintf(out, "dark-mode is %s at member 3\n", word(on(c.DD[2], DarkMode)))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	fmt.Fprintln(out, "member 1 switches dark-mode on")
	if err := turn(ctx, c.DD[0], DarkMode, true); err != nil {
		return err
	}
	for change := range Flags.Changes(watching, c.DD[2]) {
		name, _ := Flags.Rest(change.Key)
		fmt.Fprintf(out, "member 3 hears that %s is %s\n", name, word(change.Value.Enabled()))
		break
	}
	c.Cut(1)
	q, ok := errors.AsType[*distributeddata.QuorumError](turn(ctx, c.DD[1], DarkMode, false))
	if !ok {
		return errors.New("a majority without the others")
	}
	fmt.Fprintf(out, "member 2 is cut off, and switches dark-mode off: %d of %d replicas\n",
		q.Answered, q.Needed)
	fmt.Fprintln(out, "member 1 switches dark-mode on again")
	if err := turn(ctx, c.DD[0], DarkMode, true); err != nil {
		return err
	}
	fmt.Fprintln(out, "the network is whole again")
	c.Heal()
	if _, err := DarkMode.Get(ctx, c.DD[1], distributeddata.All); err != nil {
		return err
	}
	fmt.Fprintf(out, "dark-mode is %s at member 2: on wins over a concurrent off\n",
		word(on(c.DD[1], DarkMode)))
	return nil
}

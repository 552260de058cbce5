// Command voting runs a poll at every member of a cluster. Every vote counts once, even votes at a
// member that is cut off. A member accepts no more votes once it knows that the poll is closed.
//
//	go run ./examples/voting
//
//	member 3 is cut off
//	member 1 votes for tea, member 2 for coffee, member 3 for tea
//	member 1 counts coffee 1, tea 1
//	member 3 counts tea 1
//	the network is whole again
//	member 2 counts coffee 1, tea 2
//	member 1 closes the poll
//	member 2 votes for coffee: the poll is closed
//	the result at member 3: coffee 1, tea 2
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/internal/three"
)

// poll is the value of the entry. Each field merges by its own rule.
type poll struct {
	Votes  crdt.PNCounterMap[string]
	Closed crdt.EWFlag // on wins over a concurrent off
}

// Poll is the entry.
var Poll = distributeddata.NewKey("poll", crdt.Record[poll]{})

var errClosed = errors.New("the poll is closed")

// vote counts a vote at this member, which replicates it to the others.
func vote(ctx context.Context, dd *distributeddata.Replicator, choice string) error {
	_, err := Poll.Update(ctx, dd, func(w *crdt.Writer, p *crdt.Record[poll]) error {
		if p.V.Closed.Enabled() {
			return errClosed // the update fails
		}
		p.V.Votes.Add(w, choice, 1)
		return nil
	})
	return err
}

// closePoll returns when a majority knows that the poll is closed. A vote accepted afterwards comes
// from a member that does not know yet.
func closePoll(ctx context.Context, dd *distributeddata.Replicator,
	level distributeddata.Consistency) error {
	_, err := Poll.Update(ctx, dd, func(w *crdt.Writer, p *crdt.Record[poll]) error {
		p.V.Closed.Enable(w)
		return nil
	}, level)
	return err
}

func count(ctx context.Context, dd *distributeddata.Replicator,
	opts ...distributeddata.Option) (string, error) {
	p, err := Poll.Get(ctx, dd, opts...)
	var counts []string
	for choice, n := range p.V.Votes.All() {
		counts = append(counts, fmt.Sprint(choice, " ", n))
	}
	return strings.Join(counts, ", "), err
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	fmt.Fprintln(out, "member 3 is cut off")
	c.Cut(2)
	fmt.Fprintln(out, "member 1 votes for tea, member 2 for coffee, member 3 for tea")
	for i, choice := range []string{"tea", "coffee", "tea"} {
		if err := vote(ctx, c.DD[i], choice); err != nil {
			return err
		}
	}
	counts, err := count(ctx, c.DD[0], distributeddata.Majority)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "member 1 counts", counts)
	if counts, err = count(ctx, c.DD[2]); err != nil {
		return err
	}
	fmt.Fprintln(out, "member 3 counts", counts)
	fmt.Fprintln(out, "the network is whole again")
	c.Heal()
	if counts, err = count(ctx, c.DD[1], distributeddata.All); err != nil {
		return err
	}
	fmt.Fprintln(out, "member 2 counts", counts)
	fmt.Fprintln(out, "member 1 closes the poll")
	if err := closePoll(ctx, c.DD[0], distributeddata.All); err != nil {
		return err
	}
	if err := vote(ctx, c.DD[1], "coffee"); !errors.Is(err, errClosed) {
		return fmt.Errorf("a vote after the end: %w", err)
	}
	fmt.Fprintln(out, "member 2 votes for coffee:", errClosed)
	counts, err = count(ctx, c.DD[2])
	fmt.Fprintln(out, "the result at member 3:", counts)
	return err
}

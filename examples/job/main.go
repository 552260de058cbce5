// Command job runs a scheduled job once per period in a cluster of three members. The member that
// holds the lease runs it. In the middle of a run this member is paused and cut off. Its lease
// expires, another member takes over, and then the first one goes on and writes.
//
//	go run ./examples/job
//
//	the holder, with token 1, is paused in period 4
//	another member, with token 2, runs period 4
//	the first one goes on and writes: fence: stale token 1 for "report", 2 has been seen
//	token 1 wrote periods [1 2 3]
//	token 2 wrote periods [4 5 6 7 8 9 10 11 12]
//	repeated writes, which changed nothing: periods [2]
//
// A lease cannot stop a paused holder from writing when it goes on. Each period takes effect
// exactly once because the target of the writes keeps two numbers beside its data: the highest
// fencing token, which rejects former holders, and the last period, which tells a new holder where
// to begin and makes a repeated write harmless. The work before the write may be done twice, as in
// period 4.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
)

const (
	every     = time.Second // the length of a period
	periods   = 12          // the example ends after these
	disturbed = 4           // the period in whose run the holder is paused
)

// job is the job at all members.
type job struct {
	sessions [three.Members]*coordination.Session
	table    table
	epoch    time.Time // when period 0 was due; a constant in a real program
	work     func(member, period int, token coordination.Token)
	ended    chan error // why tenures ended
}

func (j *job) attach(m three.Member) error {
	j.sessions[m.Index] = m.Session
	return nil
}

// schedule runs the job at one member, whenever it holds the lease, until ctx ends.
func (j *job) schedule(ctx context.Context, member int) {
	for ctx.Err() == nil {
		lease := j.sessions[member].Lease("report")
		err := lease.Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
			return j.hold(ctx, member, g)
		})
		select {
		case j.ended <- err: // a real member would log it
		case <-ctx.Done():
		}
		_ = wait(ctx, every) // in case the target fails for long
	}
}

// hold runs each period when it is due, beginning with those that earlier holders did not write.
func (j *job) hold(ctx context.Context, member int, g *coordination.Grant) error {
	last, err := j.table.last(ctx, g.Token())
	if err != nil {
		return err
	}
	for period := last + 1; ; period++ {
		if err := wait(ctx, time.Until(j.epoch.Add(time.Duration(period)*every))); err != nil {
			return err
		}
		if err := g.Check(); err != nil {
			return err
		}
		j.work(member, period, g.Token())
		if err := j.write(ctx, g.Token(), period); err != nil {
			return err
		}
	}
}

// write writes the result of a period, and again until it has an answer.
func (j *job) write(ctx context.Context, token coordination.Token, period int) error {
	for {
		err := j.table.write(ctx, token, period)
		if err == nil || errors.Is(err, fence.ErrStale) {
			return err
		}
		if err := wait(ctx, every/10); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pause is a run that stands still until goOn is called, also after its lease has expired.
type pause struct {
	member int
	token  coordination.Token
	goOn   context.CancelFunc
}

func (j *job) run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	var members sync.WaitGroup
	defer members.Wait()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	paused := make(chan pause)
	j.epoch, j.ended = time.Now(), make(chan error)
	j.work = func(member, period int, token coordination.Token) { // a real job would work here
		if period != disturbed {
			return
		}
		still, goOn := context.WithCancel(ctx)
		defer goOn()
		select {
		case paused <- pause{member, token, goOn}:
			<-still.Done()
		case <-ctx.Done():
		}
	}
	for i := range three.Members {
		members.Go(func() { j.schedule(ctx, i) })
	}

	first, err := next(ctx, paused)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the holder, with token %d, is paused in period %d\n", first.token, disturbed)
	c.Kill(first.member) // its renewals do not reach the lease store
	second, err := next(ctx, paused)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "another member, with token %d, runs period %d\n", second.token, disturbed)
	first.goOn()
	late, err := next(ctx, j.ended)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the first one goes on and writes:", late)
	second.goOn()
	if err := three.Until(ctx, func() bool { return len(j.table.all()) >= periods }); err != nil {
		return err
	}
	written := map[coordination.Token][]int{}
	for _, r := range j.table.all()[:periods] {
		written[r.token] = append(written[r.token], r.period)
	}
	for _, token := range []coordination.Token{first.token, second.token} {
		fmt.Fprintf(out, "token %d wrote periods %v\n", token, written[token])
	}
	fmt.Fprintln(out, "repeated writes, which changed nothing: periods", j.table.again())
	return nil
}

// next receives from c until ctx ends.
func next[T any](ctx context.Context, c <-chan T) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

func main() {
	j := &job{}
	if err := three.RunWithLeases(context.Background(), os.Stdout, memory.New(), j.attach,
		j.run); err != nil {
		log.Fatal(err)
	}
}

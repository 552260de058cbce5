package datatest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata"
)

const (
	clients   = 4
	pace      = 10 * time.Millisecond // between the calls of a client
	attempt   = 2 * time.Second       // time limit of one call
	partSize  = 200                   // numbers in a set
	readEvery = 3                     // number of writes per read
)

// load is the activity of the clients. Each writes the numbers 0, 1, 2, … to its own sets at a
// majority. It repeats each number until that is acknowledged, by any member. It also reads the
// sets of all clients at a majority.
type load struct {
	t       *testing.T
	members atomic.Pointer[[]*process]
	done    chan struct{}
	working sync.WaitGroup

	mu struct {
		sync.Mutex
		acked   [clients]int  // acknowledged numbers of each client
		refused int           // calls that a member answered with ErrQuorum
		broken  int           // calls that failed with their member
		reads   int           // reads that ended, and showed everything that they had to
		slowest time.Duration // from the first attempt of a write to its acknowledgement
	}
}

func startLoad(t *testing.T, members []*process) *load {
	l := &load{t: t, done: make(chan struct{})}
	l.use(members)
	for k := range clients {
		l.working.Go(func() { l.client(k, rand.New(rand.NewPCG(uint64(k), 2))) })
	}
	t.Cleanup(l.end) // before the members end
	return l
}

// use sends the clients to these members from now on.
func (l *load) use(members []*process) { l.members.Store(&members) }

// end waits until all clients have stopped.
func (l *load) end() {
	if !l.over() {
		close(l.done)
	}
	l.working.Wait()
}

func (l *load) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *load) client(k int, r *rand.Rand) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; !l.over(); n++ {
		began := time.Now()
		for !l.write(k, n, r) {
			<-tick.C
			if l.over() {
				return
			}
		}
		l.mu.Lock()
		l.mu.acked[k]++
		l.mu.slowest = max(l.mu.slowest, time.Since(began))
		l.mu.Unlock()
		<-tick.C
		if n%readEvery == 0 {
			l.read(r.IntN(clients), r)
			<-tick.C
		}
	}
}

func (l *load) any(r *rand.Rand) *process {
	all := *l.members.Load()
	return all[r.IntN(len(all))]
}

func set(k, n int) string { return fmt.Sprintf("client %d, part %d", k, n/partSize) }

// write reports whether a majority has acknowledged the number.
func (l *load) write(k, n int, r *rand.Rand) bool {
	a, err := l.any(r).call(command{Do: "write", Key: set(k, n), Value: n,
		Level: distributeddata.Majority, Within: attempt})
	if err == nil && a.Err == "" {
		return true
	}
	l.failed(a.Quorum)
	return false
}

func (l *load) failed(refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if refused {
		l.mu.refused++
	} else {
		l.mu.broken++
	}
}

// read looks for the last numbers of a client that were acknowledged before.
func (l *load) read(k int, r *rand.Rand) {
	l.mu.Lock()
	acked := l.mu.acked[k]
	l.mu.Unlock()
	if acked == 0 {
		return
	}
	from := (acked - 1) / partSize * partSize
	a, err := l.any(r).call(command{Do: "read", Key: set(k, from), Level: distributeddata.Majority,
		Within: attempt})
	if err != nil || a.Err != "" {
		l.failed(a.Quorum)
		return
	}
	if problem := missing(a, k, from, acked); problem != "" {
		l.t.Error("a read at a majority: " + problem)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.reads++
}

// missing lists the numbers of a client, in a range, that an answer does not show.
func missing(a answer, k, from, to int) string {
	var lost []int
	for n := from; n < to; n++ {
		if !slices.Contains(a.Values, n) {
			lost = append(lost, n)
		}
	}
	if len(lost) > 0 {
		return fmt.Sprintf("%d numbers of client %d that were acknowledged are missing: %v",
			len(lost), k, lost)
	}
	return ""
}

// whole asserts that every member reads everything that was acknowledged.
func (l *load) whole(members []*process) {
	l.t.Helper()
	for i, p := range members {
		if problem := l.missedBy(p, distributeddata.Majority); problem != "" {
			l.t.Errorf("in the end, member %d: %s", i, problem)
		}
	}
}

// missedBy says what a member does not read although it was acknowledged.
func (l *load) missedBy(p *process, level distributeddata.Consistency) string {
	var problems []string
	for k, acked := range l.written() {
		for from := 0; from < acked; from += partSize {
			a, err := p.call(command{Do: "read", Key: set(k, from), Level: level, Within: patience})
			if err != nil || a.Err != "" {
				return fmt.Sprint(err, " ", a.Err)
			}
			if problem := missing(a, k, from, min(acked, from+partSize)); problem != "" {
				problems = append(problems, problem)
			}
		}
	}
	return strings.Join(problems, "; ")
}

// written returns the number of acknowledged numbers of each client.
func (l *load) written() [clients]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.acked
}

// since names a client that has written nothing since a given moment.
func (l *load) since(before [clients]int) string {
	for k, n := range l.written() {
		if n == before[k] {
			return fmt.Sprintf("client %d cannot write", k)
		}
	}
	return ""
}

func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := 0
	for _, n := range l.mu.acked {
		total += n
	}
	return fmt.Sprintf("%d writes acknowledged, the slowest after %v; %d reads; %d calls refused, %d ended with their member",
		total, l.mu.slowest.Round(time.Millisecond), l.mu.reads, l.mu.refused, l.mu.broken)
}

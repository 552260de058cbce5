//go:build linux

package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// member is a process of a cluster of Concord or of bare Proto.Actor. It carries out one command at
// a time, which is a line of its standard input, and prints one line that begins with "@ ":
//
//	run n=N ms=T op=… kind=… …         N requests, or requests for T ms if N is 0:
//	                                   done n=… ns=… start=… total=… p50=… peak=…
//	await total=N op=… kind=… …        waits until N updates of the group are here:
//	                                   there at=…
//	heap                               collects garbage: heap bytes=…
//
// start and at are Unix times in nanoseconds; total is the number of updates of the group so far;
// peak is how far the heap was above its size before, garbage included, which only Go counts.
// Each process ends at the end of its input. class Member of lab/bench/pekko does the same.
type member struct {
	root   *actor.RootContext
	target *actor.PID
	open   func(w work) requests
	groups map[string]*group
}

// requests makes the requests of one work. The numbers of updates of a group begin at 0 and have no
// gaps.
type requests struct {
	get    func(i int) any
	update func(i int) any          // at the level of the work
	mark   func(key, total int) any // a last update, for a set; nil if the value is enough
	direct func(i int) error        // nil without direct calls
	// whether this member has the update numbered want-1, or the mark of total
	has func(key, want, total int) bool
	// waits until the other members have what was updated before; nil if has is enough
	settle func() error
}

// group counts the updates of some keys.
type group struct{ next atomic.Int64 }

// runMember joins a cluster and carries out commands until the end of the input.
func runMember(args []string) error {
	flags := flag.NewFlagSet("member", flag.ContinueOnError)
	of := flags.String("of", "", "concord or bare")
	index := flags.Int("index", 0, "the number of this member")
	ttl := flags.Duration("ttl", 0, "of a singleton's lease, with -leases; 0: the default")
	leases := flags.String("leases", "",
		"a directory of leases: run a singleton, which prints its start, and nothing else")
	profile := flags.String("profile", "",
		"a file for a CPU profile of this process, from its start to its end")
	shards := flags.Bool("sharding", false, "host entities, see type shardHost")
	ports := flags.String("ports", "", "six ports: of the members, and of their provider")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var p [2 * clusterSize]int
	if _, err := fmt.Sscanf(strings.ReplaceAll(*ports, ",", " "), "%d %d %d %d %d %d", &p[0], &p[1],
		&p[2], &p[3], &p[4], &p[5]); err != nil {
		return fmt.Errorf("ports %q: %w", *ports, err)
	}
	start, ok := map[string]func(index int, ports []int) (*member, error){"concord": startConcord,
		"bare": startBare}[*of]
	if !ok || *index < 0 || *index >= clusterSize {
		return fmt.Errorf("no member %d of %q", *index, *of)
	}
	if *profile != "" {
		out, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
	}
	commands := make(chan string)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			commands <- in.Text()
		}
		pprof.StopCPUProfile()
		os.Exit(0) // also in the middle of a command
	}()
	if *shards {
		startHosting := func() (*shardHost, error) { return startPlain(*index, p[:]) }
		if *of == "concord" {
			startHosting = func() (*shardHost, error) {
				return startShards(*index, p[:], *leases, *ttl)
			}
		}
		h, err := startHosting()
		if err != nil {
			return err
		}
		serve(commands, h.obey)
		return nil
	}
	if *leases != "" {
		start = func(index int, ports []int) (*member, error) {
			return startHost(index, ports, *leases, *ttl)
		}
	}
	m, err := start(*index, p[:])
	if err != nil {
		return err
	}
	m.groups = map[string]*group{}
	serve(commands, m.obey)
	return nil
}

// serve answers the commands.
func serve(commands chan string, obey func(string) (string, error)) {
	fmt.Println("@ ready")
	for line := range commands {
		answer, err := obey(line)
		if err != nil {
			answer = "failed " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Println("@ " + answer)
	}
}

func (m *member) obey(line string) (string, error) {
	var n, ms int
	if _, err := fmt.Sscanf(line, "run n=%d ms=%d", &n, &ms); err == nil {
		w, err := parseWork(line[strings.Index(line, "op="):])
		if err != nil {
			return "", err
		}
		return m.run(w, n, time.Duration(ms)*time.Millisecond)
	}
	if _, err := fmt.Sscanf(line, "await total=%d", &n); err == nil {
		w, err := parseWork(line[strings.Index(line, "op="):])
		if err != nil {
			return "", err
		}
		return m.await(w, n)
	}
	if line == "heap" {
		return heapBytes(), nil
	}
	return "", fmt.Errorf("no such command: %q", line)
}

func heapBytes() string {
	runtime.GC()
	runtime.GC() // what finalizers and pools have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("heap bytes=%d", m.HeapAlloc)
}

// await waits until the first total updates of the group of w are here.
func (m *member) await(w work, total int) (string, error) {
	has := m.open(w).has
	deadline := time.Now().Add(awaitTimeout)
	for key := range w.keys {
		want := total / w.keys
		if key < total%w.keys {
			want++
		}
		for !has(key, want, total) {
			if time.Now().After(deadline) {
				return "", fmt.Errorf("key %s is not equal after %v", w.key(key), awaitTimeout)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return fmt.Sprintf("there at=%d", time.Now().UnixNano()), nil
}

// run carries out n requests of w, or as many as it can in the time d if n is 0.
func (m *member) run(w work, n int, d time.Duration) (string, error) {
	g := m.groups[w.group()]
	if g == nil {
		g = &group{}
		m.groups[w.group()] = g
	}
	r := m.open(w)
	l := &load{member: m, callers: w.callers, n: int64(n)}
	l.first = g.next.Load()
	l.next = &g.next
	if !w.writes() {
		l.first, l.next = 0, new(atomic.Int64)
	}
	if n == 0 {
		defer time.AfterFunc(d, func() { l.stop.Store(true) }).Stop()
	}
	peak := watchHeap()
	start := time.Now()
	switch {
	case w.direct():
		if r.direct == nil {
			return "", fmt.Errorf("no direct calls: %v", w)
		}
		l.call(r.direct, w.callers == 1 && w.writes())
	case w.callers == 0:
		for i := range n {
			m.root.Send(m.target, r.update(int(l.first)+i))
		}
		l.next.Add(int64(n))
		l.done.Add(int64(n))
	case w.op == get:
		l.ask(r.get)
	default:
		l.ask(r.update)
	}
	if w.callers == 0 {
		// Answered after all updates.
		if _, err := m.root.RequestFuture(m.target, r.get(0), awaitTimeout).Result(); err != nil {
			l.fail(err)
		}
	}
	took := time.Since(start)
	grown := peak()
	total := g.next.Load()
	if r.settle != nil {
		l.failed.err = errors.Join(l.failed.err, r.settle())
	}
	if w.awaited() && r.mark != nil {
		for key := range w.keys {
			if _, err := m.root.RequestFuture(m.target, r.mark(key, int(total)),
				awaitTimeout).Result(); err != nil {
				l.fail(err)
			}
		}
	}
	if l.failed.err != nil {
		return "", l.failed.err
	}
	return fmt.Sprintf("done n=%d ns=%d start=%d total=%d p50=%d peak=%d", l.done.Load(),
		took.Nanoseconds(), start.UnixNano(), total, l.median(), grown), nil
}

// watchHeap collects garbage and returns a function that says how many bytes the heap was above its
// size then, at most, garbage that is not collected yet included.
func watchHeap() (grown func() int64) {
	runtime.GC()
	size := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	before, most := size(), int64(0)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for ticks := time.Tick(5 * time.Millisecond); ; {
			most = max(most, size()-before)
			select {
			case <-ticks:
			case <-end:
				return
			}
		}
	}()
	return func() int64 {
		close(end)
		<-ended
		return most
	}
}

// load is a run of one work.
type load struct {
	*member

	callers int
	n       int64 // requests, or 0 to run until stop
	stop    atomic.Bool
	first   int64
	next    *atomic.Int64 // number of the next request
	done    atomic.Int64
	took    []time.Duration // of each request, with one caller
	failed  struct {
		sync.Mutex

		err error
	}
}

func (l *load) fail(err error) {
	l.failed.Lock()
	defer l.failed.Unlock()
	l.failed.err = errors.Join(err, l.failed.err)
	l.stop.Store(true)
}

// take returns the number of the next request. It reports false if there is none. A run has at
// least one.
func (l *load) take() (i int, ok bool) {
	if l.stop.Load() && l.next.Load() > l.first {
		return 0, false
	}
	next := l.next.Add(1) - 1
	if l.n > 0 && next >= l.first+l.n {
		l.next.Add(-1)
		return 0, false
	}
	return int(next), true
}

// ask lets actors send requests to the target, each one after its previous answer.
func (l *load) ask(message func(i int) any) {
	var ended sync.WaitGroup
	for range l.callers {
		ended.Add(1)
		l.root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &caller{load: l, message: message, ended: &ended}
		}))
	}
	ended.Wait()
}

type caller struct {
	*load

	message func(i int) any
	ended   *sync.WaitGroup
	done    int64
	sent    time.Time
}

// Receive implements actor.Actor. Each message is an answer, except the first.
func (c *caller) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Stopped:
		c.load.done.Add(c.done)
		c.ended.Done()
		return
	case *actor.Stopping:
		return
	case *actor.Started:
	case interface{ Err() error }:
		if err := m.Err(); err != nil {
			c.fail(err)
		}
		c.answered()
	default:
		c.answered()
	}
	i, ok := c.take()
	if !ok {
		ctx.Stop(ctx.Self())
		return
	}
	if c.callers == 1 {
		c.sent = time.Now()
	}
	ctx.Request(c.target, c.message(i))
}

func (c *caller) answered() {
	c.done++
	if c.callers == 1 {
		c.took = append(c.took, time.Since(c.sent))
	}
}

// call lets goroutines call f, each one after its previous call. With timed, which takes one
// caller, it measures each call.
func (l *load) call(f func(i int) error, timed bool) {
	var ended sync.WaitGroup
	for range l.callers {
		ended.Go(func() {
			done := int64(0)
			for {
				i, ok := l.take()
				if !ok {
					break
				}
				var begin time.Time
				if timed {
					begin = time.Now()
				}
				if err := f(i); err != nil {
					l.fail(err)
				}
				done++
				if timed {
					l.took = append(l.took, time.Since(begin))
				}
			}
			l.done.Add(done)
		})
	}
	ended.Wait()
}

// median returns the median time of a request in nanoseconds, or 0 if it was not measured.
func (l *load) median() int64 {
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return l.took[len(l.took)/2].Nanoseconds()
}

//go:build linux

// Peers runs the same work on Concord, on bare Proto.Actor and on Apache Pekko, each a cluster of
// three processes on this machine: make bench-peers. All clusters run all the time, each in a
// network namespace of its own if this is root. Workloads alternate between them, in ROUNDS rounds.
// The results are one line for each system and workload in the format of Go's benchmarks, which
// lab/bench/plot draws and puts into docs/performance.md.
//
// With -keys, it measures updates of all types of values over numbers of keys and callers.
//
// With -sharding, it measures entities instead: make bench-peers-sharding. -sharding -case op=move
// moves shards and does nothing else.
//
// With -quick, a run takes a minute and a half; its figures mean nothing. With -of, -case and
// -profile it profiles single workloads.
//
// A workload that fails is reported, and its cluster is started anew. The exit status is 1 if any
// failed.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	systems  []string
	works    []work
	heaps    []work         // measured once, after all rounds
	losses   []takeOver     // at the end
	only     *regexp.Regexp // names of workloads of entities; nil: all
	rounds   int
	each     time.Duration // length of a measurement
	warm     time.Duration // of each workload, before the first round
	updates  int           // of a spread
	mostKeys int           // of a grid
	settle   time.Duration // before the heap is measured
	pekko    string        // directory of the compiled driver
	profiles string        // directory of CPU profiles; none if empty
	shared   bool          // no namespaces
	progress io.Writer
}

// applies reports whether a system can do a work.
func applies(of string, w work) bool {
	return of == "concord" || !w.direct() && (of != "bare" || w.op != all)
}

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "member" {
		return runMember(args[1:])
	}
	return runDriver(args)
}

func runDriver(args []string) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	systems := flags.String("of", "concord,bare,pekko", "the systems")
	only := flags.String("case", "",
		"regular expression of the names of workloads, such as op=get/kind=counter")
	rounds := flags.Int("rounds", 3, "measurements of each workload")
	each := flags.Duration("each", time.Second, "length of a measurement")
	warm := flags.Duration("warm", 1500*time.Millisecond,
		"length of each workload of Pekko before the first round; a fifth of it for the others")
	quick := flags.Bool("quick", false,
		"one short round, to test this program: the figures mean nothing")
	shards := flags.Bool("sharding", false, "measure entities instead")
	keys := flags.Bool("keys", false, "measure updates of all types over numbers of keys instead")
	out := flags.String("out", "", "the file of the results; default: standard output")
	pekko := flags.String("pekko", "lab/bench/pekko/target",
		"where Maven has compiled the driver of Pekko")
	profiles := flags.String("profile", "",
		"a directory for CPU profiles of the processes of concord and bare, warm-up included")
	shared := flags.Bool("shared", false, "use no network namespaces")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-case: %w", err)
	}
	o := options{only: pattern, rounds: *rounds, each: *each, warm: *warm, updates: 100_000,
		mostKeys: manyKeys, settle: 5 * time.Second, pekko: *pekko,
		profiles: *profiles, shared: *shared, progress: os.Stderr}
	if *quick {
		o.rounds, o.each, o.warm, o.updates = 1, 50*time.Millisecond, 50*time.Millisecond, 2000
		o.mostKeys = 2000
	}
	if o.rounds < 1 || o.each < time.Millisecond || o.warm < 0 {
		return fmt.Errorf("-rounds (%d) must be at least 1, -each (%v) at least 1ms, and -warm (%v) not negative", o.rounds, o.each, o.warm)
	}
	for of := range strings.SplitSeq(*systems, ",") {
		if !slices.Contains([]string{"concord", "bare", "pekko"}, of) {
			return fmt.Errorf("-of: no system %q; there are concord, bare and pekko", of)
		}
		o.systems = append(o.systems, of)
	}
	for _, w := range cases() {
		if pattern.MatchString(w.String()) {
			o.works = append(o.works, w)
		}
	}
	for _, w := range heaps() {
		if *quick {
			w.keys = 500
		}
		if pattern.MatchString(w.String()) {
			o.heaps = append(o.heaps, w)
		}
	}
	for _, t := range takeOvers {
		name := t.String()
		if *shards {
			name = killName(t.timeout)
		}
		if pattern.MatchString(name) && (!*quick || *shards) {
			o.losses = append(o.losses, t)
		}
	}
	names := shardNames()
	if *keys {
		names = gridNames()
	}
	if (*shards || *keys) && !slices.ContainsFunc(names, o.chosen) ||
		!*shards && !*keys && len(o.works)+len(o.heaps)+len(o.losses) == 0 {
		return fmt.Errorf("-case: no workload matches %q", *only)
	}
	measure := func() ([]byte, error) { return o.measure(os.Stdout) }
	switch {
	case *shards:
		measure = o.measureShards
	case *keys:
		measure = o.measureKeys
	}
	text, failed := measure()
	switch {
	case text == nil:
	case *out == "":
		_, err = os.Stdout.Write(text)
	default:
		err = os.WriteFile(*out, text, 0o644)
	}
	return errors.Join(failed, err)
}

// bench is a measurement under way.
type bench struct {
	options

	clusters map[string]*cluster
	spaces   map[string]string
	restarts map[string]int
	results  map[string]*result
	failed   []error
}

func newBench(o options) *bench {
	return &bench{options: o, clusters: map[string]*cluster{}, spaces: map[string]string{},
		restarts: map[string]int{}, results: map[string]*result{}}
}

// enterSpaces makes a network namespace for each system.
func (b *bench) enterSpaces() {
	removeOldSpaces()
	for _, of := range b.systems {
		if b.shared {
			continue
		}
		var err error
		if b.spaces[of], err = newSpace(of); err != nil {
			fmt.Fprintf(b.progress,
				"peers: NO NETWORK NAMESPACE for %s, it shares the loopback interface: %v\n", of, err)
		}
	}
}

// measure runs all works on all systems, prints a table, and returns the lines of the results.
func (o options) measure(table io.Writer) (lines []byte, err error) {
	b := newBench(o)
	defer b.close()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupted)
	begin := time.Now()
	b.enterSpaces()
	for _, of := range o.systems {
		if len(o.works) == 0 {
			continue
		}
		if err := b.start(of); err != nil {
			return nil, err
		}
	}
	for round := range o.rounds {
		for i, w := range o.works {
			for j := range o.systems {
				select {
				case s := <-interrupted:
					return nil, fmt.Errorf("ended by signal %v", s)
				default:
				}
				if of := o.systems[(j+i+round)%len(o.systems)]; applies(of, w) {
					b.one(of, w, round)
				}
			}
		}
		if len(o.works) == 0 {
			break
		}
		fmt.Fprintf(o.progress, "peers: round %d of %d ended after %v\n", round+1, o.rounds,
			time.Since(begin).Round(time.Second))
	}
	b.stopClusters()
	for _, w := range o.heaps {
		for _, of := range o.systems {
			if applies(of, w) {
				f, err := b.heap(of, w)
				if err != nil {
					b.fail(fmt.Errorf("%s, %v: %w", of, w, err))
					continue
				}
				b.record(of, w, f)
				fmt.Fprintf(o.progress, "%-10s %-75s %.0f B, %.0f B\n", of, w, f["heap-B/key"],
					f["reader-heap-B/key"])
			}
		}
	}
	b.takeOvers()
	report(table, o.systems, o.works, b.results)
	return b.lines(begin), errors.Join(b.failed...)
}

func (b *bench) stopClusters() {
	for _, c := range b.clusters {
		c.close()
	}
	clear(b.clusters)
}

// heap measures the heap of an entry in a new cluster: in an old one, logs of earlier workloads are
// cut meanwhile.
func (b *bench) heap(of string, w work) (figure, error) {
	defer b.stopClusters()
	c, err := startCluster(of, b.spaces[of], b.pekko, b.profiles)
	if err != nil {
		return nil, err
	}
	b.clusters[of] = c
	return c.heap(w, b.settle)
}

// start starts a cluster and runs each work for a while.
func (b *bench) start(of string) error {
	begin := time.Now()
	c, err := startCluster(of, b.spaces[of], b.pekko, b.profiles)
	if err != nil {
		return err
	}
	b.clusters[of] = c
	var works []work
	for _, w := range b.works {
		if applies(of, w) {
			works = append(works, w)
		}
	}
	if err := c.prepare(works); err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	warm := b.warm
	if of != "pekko" {
		warm /= 5
	}
	for _, w := range works {
		if warm < time.Millisecond {
			break
		}
		n, d := 0, warm
		if w.op == spread {
			n, d = b.updates/5, 0
		}
		if _, err := c.run(w, n, d); err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
	}
	fmt.Fprintf(b.progress, "peers: %s started and warm after %v\n", of,
		time.Since(begin).Round(time.Second))
	return nil
}

// record keeps a measurement.
func (b *bench) record(of string, w work, f figure) {
	key := resultKey(of, w)
	if b.results[key] == nil {
		b.results[key] = &result{of: of, name: w.String()}
	}
	b.results[key].runs = append(b.results[key].runs, f)
}

// mostRestarts is how often a cluster is started anew after a failure.
const mostRestarts = 3

// one measures a work on a system. After a failure it starts the cluster anew.
func (b *bench) one(of string, w work, round int) {
	c := b.clusters[of]
	if c == nil {
		return
	}
	n, d := 0, b.each
	if w.op == spread {
		n, d = b.updates, 0
		if w.kind == "set" {
			n /= 2
		}
	}
	f, err := c.run(w, n, d)
	if err == nil {
		b.record(of, w, f)
		fmt.Fprintf(b.progress, "%d %-8s %-75s %9.0f/s %8.1f µs CPU, load %.1f, others %.1f\n",
			round+1, of, w, f["ops/s"], f["cpu-ns/op"]/1000, f["load"], f["others-cpus"])
		return
	}
	b.fail(fmt.Errorf("%s, %v, round %d: %w", of, w, round+1, err))
	c.close()
	delete(b.clusters, of)
	if b.restarts[of]++; b.restarts[of] > mostRestarts {
		b.fail(fmt.Errorf("%s: given up after %d restarts", of, mostRestarts))
		return
	}
	if err := b.start(of); err != nil {
		b.fail(err)
		if c := b.clusters[of]; c != nil {
			c.close()
			delete(b.clusters, of)
		}
	}
}

// takeOvers measures them at all systems at the same time: most of the time they wait.
func (b *bench) takeOvers() {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, of := range b.systems {
		if of == "bare" {
			continue
		}
		all.Go(func() {
			for _, t := range b.losses {
				r := &result{of: of, name: t.String()}
				for range t.rounds(b.rounds) {
					f, err := t.measure(of, b.spaces[of], b.pekko)
					mu.Lock()
					if err != nil {
						b.fail(fmt.Errorf("%s, %v: %w", of, t, err))
					} else {
						r.runs = append(r.runs, f)
						fmt.Fprintf(b.progress, "%-10s %-75v %.2f s\n", of, t, f["s-to-host"])
					}
					mu.Unlock()
				}
				mu.Lock()
				b.results[of+"/"+r.name] = r
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

func (b *bench) fail(err error) {
	fmt.Fprintln(b.progress, "peers: FAILED:", err)
	b.failed = append(b.failed, err)
}

func (b *bench) close() {
	b.stopClusters()
	for _, name := range b.spaces {
		removeSpace(name)
	}
}

// lines returns the file of results: comments, and a line for each system and work.
func (b *bench) lines(begin time.Time) []byte {
	var out bytes.Buffer
	b.about(&out, begin)
	var names []string
	for _, w := range slices.Concat(b.works, b.heaps) {
		names = append(names, w.String())
	}
	for _, t := range b.losses {
		names = append(names, t.String())
	}
	b.writeResults(&out, names)
	return out.Bytes()
}

// about writes the comments at the beginning of a file of results.
func (b *bench) about(out io.Writer, begin time.Time) {
	fmt.Fprintf(out, "# %s, %v\n", begin.UTC().Format("2 January 2006"),
		time.Since(begin).Round(time.Second))
	fmt.Fprintf(out, "# %s\n# %s", machineName(), runtime.Version())
	if slices.Contains(b.systems, "pekko") {
		fmt.Fprintf(out, "; %s", javaVersion(b.pekko))
	}
	apart := "network namespaces"
	for _, of := range b.systems {
		if b.spaces[of] == "" {
			apart = "the shared loopback interface"
		}
	}
	fmt.Fprintf(out, "\n# three processes each, on %s; %d rounds of %v\n", apart, b.rounds, b.each)
}

// writeResults writes the lines of the results with these names.
func (b *bench) writeResults(out io.Writer, names []string) {
	for _, name := range names {
		for _, of := range b.systems {
			if r := b.results[of+"/"+name]; r != nil && len(r.runs) > 0 {
				fmt.Fprintln(out, r.line())
			}
		}
	}
}

// javaVersion names the versions of Pekko and of the virtual machine.
func javaVersion(pekko string) string {
	out, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	java, _, _ := strings.Cut(string(out), "\n")
	path, _ := os.ReadFile(pekko + "/classpath")
	version := regexp.MustCompile(`pekko-distributed-data_[\d.]+-([\d.]+)\.jar`).FindSubmatch(path)
	if version == nil {
		return java
	}
	return fmt.Sprintf("Pekko %s, %s", version[1], java)
}

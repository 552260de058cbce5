//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// shardWork is a workload of entities; see shardHost.
type shardWork struct {
	op       string
	place    string
	entities int // in turn
	callers  int
	n        int // messages, or new entities; 0: as many as there are in the time
}

func (w shardWork) String() string {
	return fmt.Sprintf("op=%s/place=%s/entities=%d/callers=%d", w.op, w.place, w.entities,
		w.callers)
}

func shardWorks() (works []shardWork) {
	for _, place := range []string{"local", "remote"} {
		for _, entities := range []int{1, mostEntities} {
			works = append(works, shardWork{"tell", place, entities, 0, 0})
		}
		for _, callers := range []int{1, 100} {
			works = append(works, shardWork{"request", place, 100, callers, 0})
		}
	}
	return append(works, shardWork{"start", "local", 0, 1000, 100_000})
}

// shardBench is a measurement of entities under way.
type shardBench struct {
	*bench

	works []shardWork
	dirs  []string // of leases
}

// shardNames returns the names of all workloads of entities, in the order of the results.
func shardNames() (names []string) {
	for _, w := range shardWorks() {
		names = append(names, w.String())
	}
	names = append(names, idleName, moveName)
	for _, t := range takeOvers {
		names = append(names, killName(t.timeout))
	}
	return names
}

// chosen reports whether a workload of entities is measured.
func (o options) chosen(name string) bool { return o.only == nil || o.only.MatchString(name) }

// measureShards measures entities on all systems and returns the lines of the results.
func (o options) measureShards() (lines []byte, err error) {
	b := &shardBench{bench: newBench(o)}
	for _, w := range shardWorks() {
		if o.chosen(w.String()) {
			b.works = append(b.works, w)
		}
	}
	defer func() {
		b.close()
		for _, dir := range b.dirs {
			_ = os.RemoveAll(dir)
		}
	}()
	begin := time.Now()
	b.enterSpaces()
	if err := b.startAll(3*time.Second, b.systems); err != nil {
		return nil, err
	}
	time.Sleep(o.settle * 4) // Pekko moves shards meanwhile
	var losers []string
	for _, of := range b.systems {
		if o.chosen(idleName) {
			b.idle(of) // while the region has no other entities
		}
		if of != "bare" {
			losers = append(losers, of)
		}
	}
	for _, of := range b.systems {
		for range b.warmRounds(of) {
			for _, w := range b.works {
				if _, err := b.run(of, w); err != nil {
					return nil, err
				}
			}
			if _, err := b.move(of); err != nil {
				return nil, err
			}
		}
	}
	for round := range o.rounds {
		for i, w := range b.works {
			for j := range b.systems {
				b.record(b.systems[(i+j+round)%len(b.systems)], w, round)
			}
		}
		for j := range b.systems {
			b.recordMoves(b.systems[(j+round)%len(b.systems)], round)
		}
	}
	for _, t := range o.losses {
		for range t.rounds(o.rounds) {
			b.stopClusters()
			if err := b.startAll(t.timeout, losers); err != nil {
				return nil, err
			}
			time.Sleep(o.settle * 4)
			b.kill(t.timeout, losers)
		}
	}
	return b.shardLines(begin), errors.Join(b.failed...)
}

// warmRounds is how often each workload runs before the first round.
func (b *shardBench) warmRounds(of string) int {
	switch {
	case b.warm < 100*time.Millisecond:
		return 0
	case of == "pekko":
		return 3
	}
	return 1
}

// startAll starts clusters at the same time, with a timeout like that of takeOver.
func (b *shardBench) startAll(timeout time.Duration, systems []string) error {
	var all sync.WaitGroup
	errs, clusters := make([]error, len(systems)), make([]*cluster, len(systems))
	for i, of := range systems {
		var more []string
		switch of {
		case "concord":
			dir, err := os.MkdirTemp("", "concord-peers-")
			if err != nil {
				return err
			}
			b.dirs = append(b.dirs, dir)
			more = []string{"-sharding", "-leases", dir, "-ttl", timeout.String()}
		case "pekko":
			more = []string{"sharding", strconv.Itoa(int(timeout.Seconds()))}
		default:
			more = []string{"-sharding"}
		}
		all.Go(func() {
			clusters[i], errs[i] = startCluster(of, b.spaces[of], b.pekko, b.profiles, more...)
		})
	}
	all.Wait()
	for i, c := range clusters {
		if errs[i] == nil {
			b.clusters[systems[i]] = c
		}
	}
	return errors.Join(errs...)
}

// run carries out a work at the first member.
func (b *shardBench) run(of string, w shardWork) (figure, error) {
	c := b.clusters[of]
	n := w.n
	if b.each < 500*time.Millisecond {
		n /= 50
	}
	before, err := look(c.pids())
	if err != nil {
		return nil, err
	}
	done, err := c.members[0].ask(fmt.Sprintf("op=%s place=%s entities=%d callers=%d n=%d ms=%d",
		w.op, w.place, w.entities, w.callers, n, b.each.Milliseconds()), runTimeout)
	if err != nil {
		return nil, err
	}
	after, err := look(c.pids())
	if err != nil {
		return nil, err
	}
	ops, took := float64(done["n"]), float64(done["ns"])
	if ops == 0 {
		return nil, fmt.Errorf("%s: no request of %v was answered", of, w)
	}
	f := figure{
		"ops/s":     ops / took * 1e9,
		"cpu-ns/op": float64((after.own - before.own).Nanoseconds()) / ops,
		"load":      after.load,
		"others-cpus": max(0, float64(after.busy-before.busy-after.own+before.own)/float64(
			after.at.Sub(before.at))),
	}
	if done["p50"] > 0 {
		f["p50-ns"] = float64(done["p50"])
	}
	return f, nil
}

func (b *shardBench) record(of string, w shardWork, round int) {
	f, err := b.run(of, w)
	if err != nil {
		b.fail(fmt.Errorf("%s, %v, round %d: %w", of, w, round+1, err))
		return
	}
	b.add(of, w.String(), f)
	fmt.Fprintf(b.progress, "%d %-8s %-60s %9.0f/s %8.1f µs CPU, load %.1f, others %.1f\n", round+1,
		of, w, f["ops/s"], f["cpu-ns/op"]/1000, f["load"], f["others-cpus"])
}

func (b *shardBench) add(of, name string, f figure) {
	key := of + "/" + name
	if b.results[key] == nil {
		b.results[key] = &result{of: of, name: name}
	}
	b.results[key].runs = append(b.results[key].runs, f)
}

const moveName = "op=move/entities=1000"

// move moves a shard of a system, except bare Proto.Actor, again and again. It returns a figure for
// each move; see type moving.
func (b *shardBench) move(of string) (moves []figure, err error) {
	if of == "bare" || !b.chosen(moveName) {
		return nil, nil
	}
	n, around := 10, 100*time.Millisecond
	if b.each < 500*time.Millisecond {
		n, around = 2, b.each
	}
	done, err := b.clusters[of].members[0].ask(fmt.Sprintf(
		"op=move place=remote entities=%d callers=0 n=%d ms=%d", mostEntities, n,
		around.Milliseconds()), runTimeout)
	for i := range done["n"] {
		moves = append(moves, figure{
			"dark-ms":  float64(done[fmt.Sprint("dark", i)]) / 1e6,
			"still-ms": float64(done[fmt.Sprint("still", i)]) / 1e6,
			"lost":     float64(done[fmt.Sprint("lost", i)]),
		})
	}
	return moves, err
}

func (b *shardBench) recordMoves(of string, round int) {
	moves, err := b.move(of)
	if err != nil {
		b.fail(fmt.Errorf("%s, %s, round %d: %w", of, moveName, round+1, err))
	}
	for _, f := range moves {
		b.add(of, moveName, f)
		fmt.Fprintf(b.progress, "%d %-8s %-60s %.1f ms dark, %.1f ms while still, %g lost\n",
			round+1, of, moveName, f["dark-ms"], f["still-ms"], f["lost"])
	}
}

const idleName = "op=idle"

// idle measures the heap of an entity at the first member.
func (b *shardBench) idle(of string) {
	heap := func() int64 {
		answer, err := b.clusters[of].members[0].ask("heap", awaitTimeout)
		if err != nil {
			b.fail(err)
		}
		return answer["bytes"]
	}
	n := 100_000
	if b.each < 500*time.Millisecond {
		n /= 50
	}
	time.Sleep(b.settle)
	before := heap()
	if _, err := b.clusters[of].members[0].ask(fmt.Sprintf(
		"op=start place=local entities=0 callers=1000 n=%d ms=0", n), runTimeout); err != nil {
		b.fail(fmt.Errorf("%s, idle entities: %w", of, err))
		return
	}
	time.Sleep(b.settle)
	f := figure{"heap-B/key": float64(heap()-before) / float64(n)}
	b.add(of, idleName, f)
	fmt.Fprintf(b.progress, "%-10s %-60s %.0f B\n", of, idleName, f["heap-B/key"])
}

func killName(timeout time.Duration) string {
	return fmt.Sprintf("op=kill/seconds=%g", timeout.Seconds())
}

// kill kills the last member of all systems at once, and measures the time until an entity of each
// shard has answered the first one.
func (b *shardBench) kill(timeout time.Duration, systems []string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, of := range systems {
		all.Go(func() {
			c := b.clusters[of]
			killed := time.Now()
			err := c.members[clusterSize-1].cmd.Process.Kill()
			answer := map[string]int64{}
			if err == nil {
				answer, err = c.members[0].ask("probe", runTimeout)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				b.fail(fmt.Errorf("%s, %s: %w", of, killName(timeout), err))
				return
			}
			f := figure{"s-to-host": time.Unix(0, answer["at"]).Sub(killed).Seconds()}
			b.add(of, killName(timeout), f)
			fmt.Fprintf(b.progress, "%-10s %-60s %.2f s\n", of, killName(timeout), f["s-to-host"])
		})
	}
	all.Wait()
}

// shardLines returns the file of results.
func (b *shardBench) shardLines(begin time.Time) []byte {
	var out bytes.Buffer
	b.about(&out, begin)
	b.writeResults(&out, shardNames())
	return out.Bytes()
}

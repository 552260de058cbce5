//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// measureKeys measures the grid of each kind of values, in a cluster of its own: one with few keys
// is not to carry the keys of another. It returns the lines of the results.
func (o options) measureKeys() (lines []byte, err error) {
	b := newBench(o)
	defer b.close()
	begin := time.Now()
	b.enterSpaces()
	var names []string
	for range o.rounds {
		for _, kind := range gridKinds() {
			works := slices.DeleteFunc(grid(kind, o.mostKeys), func(w work) bool {
				return !o.only.MatchString(w.String())
			})
			for _, of := range o.systems {
				b.kind(of, works)
			}
			for _, w := range works {
				if !slices.Contains(names, w.String()) {
					names = append(names, w.String())
				}
			}
		}
	}
	var out bytes.Buffer
	b.about(&out, begin)
	b.writeResults(&out, names)
	return out.Bytes(), errors.Join(b.failed...)
}

// kind runs works in a new cluster of a system.
func (b *bench) kind(of string, works []work) {
	works = slices.DeleteFunc(slices.Clone(works), func(w work) bool {
		return !applies(of, w) || of != "concord" && !w.everywhere()
	})
	if len(works) == 0 {
		return
	}
	defer b.stopClusters()
	c, err := startCluster(of, b.spaces[of], b.pekko, b.profiles)
	if err != nil {
		b.fail(err)
		return
	}
	b.clusters[of] = c
	made := map[string]bool{}
	for _, w := range works {
		if !made[w.group()] {
			made[w.group()] = true
			first := w
			first.callers = 64
			if _, err := c.run(first, w.keys, 0); err != nil {
				b.fail(fmt.Errorf("%s, first updates of %v: %w", of, w, err))
				return
			}
		}
		warm := b.warm
		if of != "pekko" {
			warm /= 5
		}
		if _, err := c.run(w, 0, max(warm, time.Millisecond)); err != nil {
			b.fail(fmt.Errorf("%s, %v: %w", of, w, err))
			return
		}
		f, err := c.run(w, 0, b.each)
		if err != nil {
			b.fail(fmt.Errorf("%s, %v: %w", of, w, err))
			return
		}
		b.record(of, w, f)
		fmt.Fprintf(b.progress, "%-8s %-75s %9.0f/s %8.1f µs CPU, heap %.0f MB, load %.1f\n", of, w,
			f["ops/s"], f["cpu-ns/op"]/1000, f["peak-heap-B"]/1e6, f["load"])
	}
}

// Command durable measures the durable stores, the disk, and the databases below them, alternately
// in one run: commits of one row of 1 kB, updates of replicators that keep their keys in these
// stores, the cost of a store for volatile keys, loads, starts after kill -9 and after a clean
// stop, and the heap of an idle store.
//
//	go run ./lab/bench/durable [-dir DIR] [-rounds 5] [-time 1s] [-load 100000,1000000] [-only starts]
//
// Rates are medians of the rounds. Compare only ratios within one run.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	dir := flag.String("dir", "",
		"a directory on the disk to be measured; a temporary one if empty")
	rounds := flag.Int("rounds", 5, "rounds of each case")
	each := flag.Duration("time", time.Second, "how long a case runs in a round")
	loads := flag.String("load", "100000,1000000",
		"numbers of rows and of entries to be loaded, with commas")
	only := flag.String("only", "",
		"one part: heaps, commits, volatile, amplification, starts or loads; empty: all")
	engine := flag.String("write", "",
		"write with this store to -dir until the standard input ends; the starts run themselves so")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	sizes, err := numbers(*loads)
	switch {
	case err != nil:
	case *engine != "":
		err = writeUntilEnd(*dir, *engine, sizes[0])
	default:
		err = measure(*dir, *rounds, *each, sizes, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func numbers(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func measure(dir string, rounds int, each time.Duration, sizes []int, only string) error {
	dir, err := os.MkdirTemp(dir, "durable")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"heaps", func() error { return heaps(dir) }},
		{"commits", func() error { return commits(dir, rounds, each) }},
		{"volatile", func() error { return volatile(dir, rounds, each) }},
		{"amplification", func() error { return amplification(dir) }},
		{"starts", func() error {
			return forEach(sizes, func(n int) error { return starts(dir, rounds, n) })
		}},
		{"loads", func() error {
			return forEach(sizes, func(n int) error { return loadsOf(dir, n) })
		}},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func forEach(sizes []int, f func(n int) error) error {
	for _, n := range sizes {
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

// result is the result of a case in one round.
type result struct {
	rate     float64 // writes a second
	p50, p99 time.Duration
}

// commits measures all cases alternately, and prints medians relative to the first case, the disk.
func commits(dir string, rounds int, each time.Duration) error {
	all := append(cases(), replicatorCases()...)
	results := make([][]result, len(all))
	for round := range rounds {
		for i, c := range all {
			r, err := c.run(filepath.Join(dir, fmt.Sprint("commits", round, i)), each)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	var disk float64
	fmt.Printf("\n%-34s %10s %9s %9s %14s\n", "commits of one row of 1 kB", "1/s", "p50 ms",
		"p99 ms", "x append+fsync")
	for i, c := range all {
		m := median(results[i])
		if i == 0 {
			disk = m.rate
		}
		fmt.Printf("%-34s %10.0f %9.2f %9.2f %14.2f\n", c.name, m.rate, m.p50.Seconds()*1e3,
			m.p99.Seconds()*1e3, m.rate/disk)
	}
	return nil
}

// median returns the result with the median rate.
func median(all []result) result {
	slices.SortFunc(all, func(a, b result) int { return int(a.rate - b.rate) })
	return all[len(all)/2]
}

// bench is a way to write a value of 1 kB to a disk.
type bench struct {
	name    string
	writers int
	open    func(dir string) (writer, error)
}

type writer struct {
	write func(n int) error // the n-th value, from many goroutines
	close func() error
}

// run lets the writers write for the given time.
func (b bench) run(dir string, each time.Duration) (result, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return result{}, err
	}
	w, err := b.open(dir)
	if err != nil {
		return result{}, err
	}
	var next atomic.Int64
	var work sync.WaitGroup
	took := make([][]time.Duration, b.writers)
	errs := make([]error, b.writers)
	begin := time.Now()
	for i := range b.writers {
		work.Go(func() {
			for time.Since(begin) < each && errs[i] == nil {
				from := time.Now()
				errs[i] = w.write(int(next.Add(1)))
				took[i] = append(took[i], time.Since(from))
			}
		})
	}
	work.Wait()
	over := time.Since(begin)
	for _, err := range append(errs, w.close(), os.RemoveAll(dir)) {
		if err != nil {
			return result{}, err
		}
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return result{float64(len(all)) / over.Seconds(), all[len(all)/2], all[len(all)*99/100]}, nil
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "those whose names match this regular expression")
	files := flag.String("in", "", "those in files whose paths match this regular expression")
	log := flag.String("log", "", "append the verdicts to this file, and skip the bugs that are killed in it")
	workers := flag.Int("p", min(4, runtime.GOMAXPROCS(0)), "how many at a time")
	list := flag.Bool("list", false, "plant nothing, only print the table")
	check := flag.Bool("check", false, "only check that the program compiles with each of them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, choice{*only, *files, *log}, *workers, *list, *check); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, c choice, workers int, list, check bool) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := newLab(ctx, dir)
	if err != nil {
		return err
	}
	all := table()
	if err := l.find(all); err != nil {
		return err
	}
	chosen, err := c.of(all)
	if err != nil {
		return err
	}
	if list {
		_, err := io.WriteString(out, markdown(chosen))
		return err
	}
	if err := l.check(ctx, chosen); err != nil || check {
		return err
	}
	if err := l.withoutBugs(ctx, out, chosen, workers); err != nil {
		return err
	}
	start := time.Now()
	verdicts := make([]error, len(chosen))
	killers := make([]string, len(chosen))
	var mu sync.Mutex
	done := 0
	each(workers, len(chosen), func(i int) {
		killers[i], verdicts[i] = l.plant(ctx, i, chosen[i])
		mu.Lock()
		defer mu.Unlock()
		done++
		line := verdict(chosen[i], killers[i], verdicts[i])
		fmt.Fprintf(out, "%d of %d: %s\n", done, len(chosen), line)
		if ctx.Err() == nil {
			verdicts[i] = errors.Join(verdicts[i], c.note(line))
		}
	})
	if report(out, chosen, killers, verdicts) > 0 {
		return errors.Join(verdicts...)
	}
	fmt.Fprintf(out, "\n%d of %d killed in %v\n", len(chosen), len(chosen), time.Since(start).Round(time.Second))
	return nil
}

// verdict describes the result for a bug.
func verdict(m mutant, killer string, err error) string {
	if err != nil {
		return m.name + ": NOT KILLED: " + err.Error()
	}
	return m.name + killedBy + killer
}

// report lists the bugs that were not killed, and returns their number.
func report(out io.Writer, all []mutant, killers []string, verdicts []error) (bad int) {
	for i, m := range all {
		if verdicts[i] != nil {
			bad++
			fmt.Fprintln(out, verdict(m, killers[i], verdicts[i]))
		}
	}
	return bad
}

// each calls f for every index below n, with at most the given number of concurrent workers.
func each(workers, n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// markdown returns a table of the bugs and the tests that must detect them.
func markdown(all []mutant) string {
	var b strings.Builder
	b.WriteString("| planted bug | rule it breaks | in | killed by |\n|---|---|---|---|\n")
	for _, m := range all {
		test := strings.Trim(m.killer.run, "^$")
		fmt.Fprintf(&b, "| %s | %s | `%s` | `%s` in `%s` |\n", m.name, m.rule, m.files[0],
			strings.NewReplacer("^", "", "$", "", "|", "`, `").Replace(test), strings.TrimPrefix(m.killer.pkg, "./"))
	}
	return b.String()
}

// Quickstart runs a small shop on three real nodes. While they work, it kills one of them, cuts one
// off from the others, or kills all three at once, and shows that nothing was lost.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -durable
//	go run ./examples/quickstart -ui
//
// Three processes on this machine form a cluster. Each cart is an entity, alive on one node and
// reached from every node, and keeps its contents in replicated data, written to a majority of the
// nodes. Checkouts are handled by the clerk, a singleton that works only while its lease is
// held. It numbers the orders 1, 2, 3 … without gap or duplicate, even if its node dies. With
// -durable each node also keeps the data on its disk, and all three are killed at once. With -ui
// each node serves its cockpit, a page for a browser, and the nodes continue after the run until
// Ctrl-C. At the end the state of every node is compared with that of the others and with a plain
// fold of the events.
//
// It exits with 0 if every check held, 1 if one did not, 2 for wrong flags, 3 if the checks held
// but some input lines were not events, and 130 if it was interrupted.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed testdata/events.jsonl
var sample embed.FS

// faults are the values of -kill.
var faults = []string{"none", "any", "clerk", "all", "partition", "freeze"}

type flags struct {
	events, kill, out         string
	verbose, tls, durable, ui bool
}

// settle determines the fault, and returns an error if the flags cannot work.
func (f *flags) settle() error {
	if f.kill == "" {
		f.kill = "clerk"
		if f.durable {
			f.kill = "all"
		}
	}
	switch {
	case !slices.Contains(faults, f.kill):
		return fmt.Errorf("-kill %q is none of %s", f.kill, strings.Join(faults, ", "))
	case f.kill == "all" && !f.durable:
		return errors.New("-kill all needs -durable: without it the data is in the memory of the nodes that are killed")
	}
	if _, err := os.Stat(filepath.Dir(f.out)); err != nil { // not after the whole run
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

func main() {
	if raw := os.Getenv(nodeEnv); raw != "" {
		os.Exit(nodeMain(raw))
	}
	var f flags
	flag.StringVar(&f.events, "events", "",
		"`file` of events, one JSON object a line; - is standard input (default: a built-in sample)")
	flag.StringVar(&f.kill, "kill", "",
		"what happens half-way: `none, any, clerk, all, partition or freeze`; the second to fourth kill these nodes (default: clerk, or all with -durable)")
	flag.BoolVar(&f.durable, "durable", false,
		"keep the data on a disk of each node, and kill all nodes at once unless -kill says otherwise")
	flag.StringVar(&f.out, "out", "", "`file` for the final state as read from each node")
	flag.BoolVar(&f.tls, "tls", false,
		"let the nodes talk with TLS, under certificates made for this run")
	flag.BoolVar(&f.ui, "ui", false,
		"serve the cockpit of each node, and keep running after the run until Ctrl-C")
	flag.BoolVar(&f.verbose, "v", false, "show the logs of the nodes")
	flag.Parse()
	err := f.settle()
	if flag.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "quickstart: %v; see -help\n", err)
		os.Exit(2)
	}
	ctx, stop := interruptible()
	defer stop()
	os.Exit(run(ctx, f, newScreen(os.Stdout)))
}

// nodeMain is the main function of a node process.
func nodeMain(raw string) int {
	var cfg nodeConfig
	err := json.Unmarshal([]byte(raw), &cfg)
	if err == nil {
		err = runNode(cfg, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cfg.Name, err)
		return 1
	}
	return 0
}

// interruptible returns a context that ends with Ctrl-C, or with the parent process.
func interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		for pause(ctx, 500*time.Millisecond) == nil {
			if os.Getppid() != parent {
				cancel()
			}
		}
	}()
	return ctx, func() { cancel(); stop() }
}

func run(ctx context.Context, f flags, say *screen) int {
	events, bad, err := load(f.events)
	if err != nil {
		fmt.Fprintf(os.Stderr, "quickstart: %v\n", err)
		return 1
	}
	err = shopDay(ctx, f, say, events)
	switch {
	case ctx.Err() != nil && !(f.ui && err == nil):
		say.line("interrupted: every node has been ended")
		return 130
	case err != nil:
		say.line("✗ FAILED: %v", err)
		return 1
	case bad > 0:
		say.line("%d bad lines were skipped", bad)
		return 3
	}
	return 0
}

// load reads the events and reports bad lines to standard error.
func load(name string) (events []event, bad int, err error) {
	var in io.ReadCloser
	switch name {
	case "":
		in, err = sample.Open("testdata/events.jsonl")
	case "-":
		in = os.Stdin
	default:
		in, err = os.Open(name)
	}
	if err != nil {
		return nil, 0, err
	}
	defer in.Close()
	events, err = readEvents(in, func(line int, err error) {
		bad++
		fmt.Fprintf(os.Stderr, "line %d skipped: %v\n", line, err)
	})
	return events, bad, err
}

// shopDay runs the whole example.
func shopDay(ctx context.Context, f flags, say *screen, events []event) error {
	begin := time.Now()
	say.line("starting three nodes")
	k, err := newShopkeeper(say, f)
	orderly := false
	defer func() { k.close(orderly) }()
	if err != nil {
		return err
	}
	if err := k.open(ctx); err != nil {
		return err
	}
	say.line("✓ three nodes, three processes, one cluster after %v",
		time.Since(begin).Round(10*time.Millisecond))
	if f.ui {
		say.line("  open the cockpit: %s", k.address())
	}
	took, err := k.work(ctx, f.kill, events)
	if err != nil {
		return err
	}
	err = k.report(ctx, f.out, events, took)
	orderly = err == nil
	if orderly && f.ui {
		k.keepOpen(ctx)
	}
	return err
}

// work serves the events and triggers the fault half-way.
func (k *shopkeeper) work(ctx context.Context, kill string,
	events []event) (took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total, begin := int64(len(events)), time.Now()
	struck := make(chan error, 1)
	if kill == "none" {
		struck <- nil
	} else {
		go func() {
			for k.done.Load() < total/2 && pause(ctx, time.Millisecond) == nil {
			}
			struck <- k.strike(ctx, kill)
		}()
	}
	go func() {
		for pause(ctx, 50*time.Millisecond) == nil {
			k.say.progress(k.done.Load(), total, begin)
		}
	}()
	err = k.serve(ctx, events)
	took = time.Since(begin)
	if err != nil {
		cancel()
	}
	err = errors.Join(err, <-struck)
	k.say.progress(k.done.Load(), total, begin)
	k.say.endProgress()
	return took, err
}

// report compares the nodes with each other and with a fold of the events, and prints a summary.
func (k *shopkeeper) report(ctx context.Context, out string, events []event,
	took time.Duration) error {
	want, ids := fold(events)
	all, err := k.dumps(ctx, func(all []result) error {
		for i, r := range all {
			if err := r.compare(want, ids, k.numbers); err != nil {
				return fmt.Errorf("%s differs from the fold of the events: %w", k.nodes[i].name,
					err)
			}
			if !reflect.DeepEqual(r, all[0]) {
				return fmt.Errorf("%s and %s differ", k.nodes[0].name, k.nodes[i].name)
			}
		}
		return nil
	})
	if out != "" && len(all) == nodeCount {
		err = errors.Join(err, save(out, all))
	}
	if err != nil {
		return err
	}
	bytes, keys := k.lost, 0
	for _, s := range k.statuses(ctx) {
		if s != nil {
			bytes, keys = bytes+s.Bytes, max(keys, s.Keys)
		}
	}
	k.say.table([][2]string{
		{"events", fmt.Sprint(len(events))},
		{"events/s", fmt.Sprintf("%.0f", float64(len(events))/max(took.Seconds(), 0.001))},
		{"orders", fmt.Sprint(len(ids))},
		{"keys", fmt.Sprint(keys)},
		{"bytes on the wire", fmt.Sprint(bytes)},
		{"repeated", fmt.Sprintf("%d events, whose first outcome was unknown",
			k.retries.Load())},
	})
	k.say.line("✓ the three nodes are equal to each other and to a plain fold of the %d events",
		len(events))
	return nil
}

// save writes the state of the nodes as JSON, atomically.
func save(name string, all []result) error {
	raw, err := json.Marshal(map[string][]result{"nodes": all})
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".quickstart-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(raw, '\n'))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}

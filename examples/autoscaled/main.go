// Command autoscaled runs a cluster whose members have no names. They are started and stopped like
// those of an autoscaler, at addresses that are not known beforehand. A record in the lease store,
// here a directory, lists the members that are counted in majorities. All members continuously
// write at a majority.
//
//	go run ./examples/autoscaled
//
//	1 member began the cluster alone: 1 is counted, and it writes
//	2 came: 3 are counted, and all of them write
//	2 came: 5 are counted, and all of them write
//	1 was killed: 4 are counted when it is forgotten, and all of them write
//	2 came, and all the others stopped in order: 2 are counted, and all of them write
//	of the acknowledged writes none is lost
//
// It exits with 0 if all checks hold. The members are processes of this program.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	if os.Getenv(memberEnv) != "" {
		runMember()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "concord-autoscaled-")
	if err == nil {
		err = errors.Join(show(ctx, os.Stdout, os.Stderr, dir), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// show runs the whole example, with the lease store in dir. Members write their logs to stderr.
func show(ctx context.Context, out, stderr io.Writer, dir string) error {
	f, err := newFleet(dir, stderr)
	if err != nil {
		return err
	}
	defer func() { f.kill(len(f.running)) }()
	for _, step := range []struct {
		says  string
		do    func() error
		count int
	}{
		{"1 member began the cluster alone: 1 is counted, and it writes", func() error {
			return f.grow(ctx, 1)
		}, 1},
		{"2 came: 3 are counted, and all of them write", func() error { return f.grow(ctx, 2) }, 3},
		{"2 came: 5 are counted, and all of them write", func() error { return f.grow(ctx, 2) }, 5},
		{"1 was killed: 4 are counted when it is forgotten, and all of them write", func() error {
			f.kill(1)
			return nil
		}, 4},
		{"2 came, and all the others stopped in order: 2 are counted, and all of them write",
			func() error {
				return f.replace(ctx, 2)
			}, 2},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if err := f.agree(ctx, step.count); err != nil {
			return err
		}
		fmt.Fprintln(out, step.says)
	}
	if err := f.complete(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "of the acknowledged writes none is lost")
	return f.shrink(len(f.running))
}

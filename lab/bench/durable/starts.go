package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
)

// started holds the times of a start, measured from before the store is opened.
type started struct {
	open  time.Duration // until the store is open
	shown time.Duration // rows are loaded and compared with their fingerprint, reads return
	ready time.Duration // until the member is counted
}

// starts prints the time a replicator takes to start with the given number of durable entries of 1
// kB. It alternates, in one directory, between starts after a clean stop of a writing process and
// after a kill during writes. It also prints a start with an empty directory.
func starts(dir string, rounds, entries int) error {
	engines := []string{"badger", "bbolt"}
	after := map[string][]started{}
	for round := range rounds {
		for _, engine := range engines {
			at := filepath.Join(dir, fmt.Sprint("starts-", entries, "-", engine))
			for _, way := range []string{"stop", "kill -9"} {
				if err := write(at, engine, entries, 6_000*(round+1),
					way == "kill -9"); err != nil {
					return err
				}
				s, err := start(at, engine, entries)
				if err != nil {
					return fmt.Errorf("%s after %s: %w", engine, way, err)
				}
				after[engine+way] = append(after[engine+way], s)
			}
			empty, err := start(filepath.Join(dir, fmt.Sprint("empty-", engine, entries, round)),
				engine, 0)
			if err != nil {
				return err
			}
			after[engine] = append(after[engine], empty)
		}
	}
	fmt.Printf("\n%-34s %10s %9s %9s %9s %14s\n", fmt.Sprintf("start with %d entries of 1 kB",
		entries),
		"open s", "shown s", "slowest s", "ready s", "x after a stop")
	for _, engine := range engines {
		base := medianStart(after[engine+"stop"])
		for _, way := range []string{"stop", "kill -9"} {
			all := after[engine+way]
			m := medianStart(all)
			fmt.Printf("%-34s %10.2f %9.2f %9.2f %9.2f %14.2f\n", engine+" after "+way,
				m.open.Seconds(), m.shown.Seconds(), all[len(all)-1].shown.Seconds(),
				m.ready.Seconds(), m.shown.Seconds()/base.shown.Seconds())
		}
		m := medianStart(after[engine])
		fmt.Printf("%-34s %10.2f %9.2f %9s %9.2f\n", engine+", empty", m.open.Seconds(),
			m.shown.Seconds(), "", m.ready.Seconds())
	}
	return nil
}

// medianStart sorts starts by the time until reads return, and returns the median.
func medianStart(all []started) started {
	slices.SortFunc(all, func(a, b started) int { return cmp.Compare(a.shown, b.shown) })
	return all[len(all)/2]
}

// start starts a replicator, checks that it has the given number of entries, and closes it.
func start(dir, engine string, entries int) (s started, err error) {
	runtime.GC() // collect the garbage of the previous start
	begin := time.Now()
	m, err := startMembers(dir, engine, 1, func(opened store.Store) store.Store {
		s.open = time.Since(begin)
		return opened
	})
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// Retry while the member starts.
	for err = distributeddata.ErrClosed; errors.Is(err, distributeddata.ErrClosed); {
		runtime.Gosched()
		_, err = entry(max(entries, 1)-1).Get(ctx, m.dd[0])
	}
	if entries == 0 && errors.Is(err, distributeddata.ErrNotFound) {
		err = nil
	}
	s.shown = time.Since(begin)
	err = errors.Join(err, m.ready())
	s.ready = time.Since(begin)
	if d := m.dd[0].Status().Durable; d.Keys != entries || d.Holes > 0 {
		err = errors.Join(err, fmt.Errorf("%d entries of %d, %d rows that cannot be read", d.Keys,
			entries, d.Holes))
	}
	return s, errors.Join(err, m.close())
}

// entry returns the n-th durable entry.
func entry(n int) distributeddata.Key[crdt.LWWRegister[string]] {
	return distributeddata.NewKey(fmt.Sprintf("d key of thirty bytes %08d", n),
		crdt.LWWRegister[string]{})
}

func fillEntries(dd *distributeddata.Replicator, entries int) error {
	v := string(value())
	for n := 0; n < entries; {
		end := min(n+500, entries)
		err := distributeddata.Atomically(context.Background(), dd,
			func(tx *distributeddata.Tx) error {
				for i := n; i < end; i++ {
					entry(i).In(tx).Set(tx.Writer, v)
				}
				return nil
			}, distributeddata.Local)
		if err != nil {
			return err
		}
		n = end
	}
	return nil
}

const (
	lineEvery = 1_000 // number of updates between two lines of the writing process
	writers   = 64
)

// write starts a process that fills a directory with entries, if they are missing, and updates
// them. After the given number of updates it kills the process during further updates, or stops it
// cleanly.
func write(dir, engine string, entries, updates int, kill bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-write", engine, "-dir", dir, "-load", fmt.Sprint(entries))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for range updates / lineEvery {
		if _, err := lines.ReadString('\n'); err != nil {
			return errors.Join(fmt.Errorf("the process that writes has ended: %w", err), cmd.Wait())
		}
	}
	if kill {
		err = cmd.Process.Kill()
	} else {
		err = in.Close()
	}
	_, _ = io.Copy(io.Discard, lines)
	if ended := cmd.Wait(); !kill {
		err = errors.Join(err, ended)
	}
	return err
}

// writeUntilEnd fills a directory with durable entries, if they are missing, and updates them until
// the standard input ends. It prints a line for every lineEvery updates.
func writeUntilEnd(dir, engine string, entries int) error {
	m, err := openMembers(dir, engine, 1, nil)
	if err != nil {
		return err
	}
	if m.dd[0].Status().Durable.Keys < entries {
		if err := fillEntries(m.dd[0], entries); err != nil {
			return err
		}
	}
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop.Store(true)
	}()
	var done atomic.Int64
	var work sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		work.Go(func() {
			v := string(value())
			for errs[i] == nil && !stop.Load() {
				n := done.Add(1)
				if n%lineEvery == 0 {
					fmt.Println(n)
				}
				_, errs[i] = entry(int(n*7919)%entries).Update(context.Background(), m.dd[0],
					func(w *crdt.Writer, r *crdt.LWWRegister[string]) error {
						r.Set(w, v)
						return nil
					}, distributeddata.Local)
			}
		})
	}
	work.Wait()
	return errors.Join(append(errs, m.close())...)
}

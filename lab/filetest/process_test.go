//go:build unix

package filetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
)

// processConfig is as short as a busy machine allows.
func processConfig() coordination.Config {
	return coordination.Config{TTL: 1500 * time.Millisecond, RenewInterval: 300 * time.Millisecond,
		OperationTimeout: 250 * time.Millisecond, RetryInterval: 100 * time.Millisecond,
		Drain: 250 * time.Millisecond, Margin: 150 * time.Millisecond}
}

// contend runs one contender process. It holds the lease again and again, and logs its work while
// it holds the lease. The process is killed at some moment, or stops at the deadline.
func contend(dir string, until time.Time) error {
	s, err := file.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	session, err := coordination.Open(s, processConfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	defer session.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		err := session.Lease("job").Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
			return work(ctx, dir, g)
		})
		if err != nil && ctx.Err() == nil && !errors.Is(err, coordination.ErrLost) {
			return err
		}
	}
	return nil
}

// work logs effects, each with a time taken before the check.
func work(ctx context.Context, dir string, g *coordination.Grant) error {
	for range rand.IntN(20) {
		at := time.Now()
		if err := g.Check(); err != nil {
			return err
		}
		if err := note(dir, "%d %d %d\n", at.UnixNano(), g.Token(), os.Getpid()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// note appends one line in one write, so that lines are in the order of true time.
func note(dir, format string, args ...any) error {
	f, err := os.OpenFile(filepath.Join(dir, "..", "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, format, args...)
	return errors.Join(err, f.Close())
}

// TestProcesses_ExclusionUnderKills runs real processes on one directory, and kills and stops them
// at random moments. It checks in their common log that work of one tenure never follows work of a
// later one, and that each token belongs to one process.
func TestProcesses_ExclusionUnderKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	dir := filepath.Join(t.TempDir(), "leases")
	for range 10 { // a busy machine gets more time
		fight(t, dir)
		if tenures := checkLog(t, filepath.Join(dir, "..", "log")); tenures >= 5 || t.Failed() {
			return
		}
	}
	t.Error("too few tenures to judge by")
}

// fight lets processes contend for some seconds.
func fight(t *testing.T, dir string) {
	until := time.Now().Add(6 * time.Second)
	var running []*exec.Cmd
	start := func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CONCORD_CONTEND="+dir, "CONCORD_UNTIL="+
			strconv.FormatInt(until.UnixNano(), 10))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for range 4 {
		start()
	}
	for time.Now().Before(until.Add(-time.Second)) {
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		i := rand.IntN(len(running))
		if p := running[i].Process; rand.IntN(3) == 0 { // pause longer than the TTL
			_ = p.Signal(syscall.SIGSTOP)
			time.AfterFunc(2*time.Second, func() { _ = p.Signal(syscall.SIGCONT) })
			continue
		}
		_ = running[i].Process.Kill()
		_ = running[i].Wait()
		running = append(running[:i], running[i+1:]...)
		start()
	}
	time.Sleep(2 * time.Second) // until the last pause has ended
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("contender: %v", err)
		}
	}
}

// checkLog accepts work of an older tenure after that of a newer one only if its check came before:
// a process may be stopped between the check and the effect, which is why fencing exists. It
// returns the number of tenures.
func checkLog(t *testing.T, path string) int {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // perhaps no process got anywhere
		t.Fatal(err)
	}
	owners, lines, late := map[int64]int64{}, 0, 0
	var high, began int64 // largest token, and when its work began
	for scanner := bufio.NewScanner(strings.NewReader(string(data))); scanner.Scan(); lines++ {
		var at, token, pid int64
		if _, err := fmt.Sscan(scanner.Text(), &at, &token, &pid); err != nil {
			t.Fatalf("line %q: %v", scanner.Text(), err)
		}
		if owners[token] == 0 {
			owners[token] = pid
		}
		switch {
		case owners[token] != pid:
			t.Errorf("token %d of %d and of %d", token, owners[token], pid)
		case token > high:
			high, began = token, at
		case token < high && at >= began:
			t.Errorf("work under token %d at %d, after token %d began at %d", token, at,
				high, began)
		case token < high:
			late++ // stopped between check and effect
		}
	}
	t.Logf("%d effects in %d tenures, %d late writes for a fence to refuse", lines, len(owners),
		late)
	return len(owners)
}

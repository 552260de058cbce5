//go:build unix

package filetest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
)

// writeForEver replaces a record as fast as it can, and prints the number of each write that has
// returned.
func writeForEver(dir string) error {
	s, err := file.Open(dir)
	if err != nil {
		return err
	}
	rec, ver, err := s.Load(context.Background(), "x")
	for err == nil {
		rec.Attempt++
		if ver, err = s.Swap(context.Background(), "x", ver, rec); err == nil {
			fmt.Println(rec.Attempt)
		}
	}
	return err
}

// TestKill_LeavesTheOldRecordOrTheNew kills a writer at random moments. The record is then the last
// one reported as written, or the one after it, and the next writer continues without help.
func TestKill_LeavesTheOldRecordOrTheNew(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for round := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CONCORD_WRITE="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // the writer runs
		time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() {
			_ = cmd.Process.Kill()
		})
		var told uint64
		for more := true; more; more = lines.Scan() {
			_, _ = fmt.Sscan(lines.Text(), &told)
		}
		_ = cmd.Wait()
		rec, ver, err := s.Load(t.Context(), "x")
		if err != nil || rec.Attempt < told || rec.Attempt > told+1 {
			t.Fatalf("round %d: record %d, told %d, %v", round, rec.Attempt, told, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = s.Swap(ctx, "x", ver, leasestore.Record{Attempt: rec.Attempt + 1})
		cancel()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

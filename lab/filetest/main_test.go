//go:build unix

package filetest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/file"
)

// TestMain turns this binary into a contender or a writer if it was started as one.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONCORD_CONTEND"); dir != "" {
		until, _ := strconv.ParseInt(os.Getenv("CONCORD_UNTIL"), 10, 64)
		if err := contend(dir, time.Unix(0, until)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv("CONCORD_WRITE"); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, dir string) file.Store {
	s, err := file.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

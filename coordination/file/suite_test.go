//go:build unix

package file_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/testkit/leasetest"
)

// TestMain makes this binary a contender if it was started as one.
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
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) coordination.Store { return open(t, t.TempDir()) })
}

func open(t testing.TB, dir string) *file.Store {
	s, err := file.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

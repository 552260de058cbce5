package leasetest_test

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // handlers that panic are logged
	if os.Getenv(bugVariable) != "" {
		os.Exit(m.Run()) // leaks of a planted bug do not count
	}
	goleak.VerifyTestMain(m)
}

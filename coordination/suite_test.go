package coordination_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // handlers that panic are logged
	goleak.VerifyTestMain(m)
}

func TestConformance_Memory(t *testing.T) {
	leasetest.Run(t, func(*testing.T) coordination.Store {
		return memory.New()
	}, leasetest.Options{})
}

package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The output must match the comment of the command.
func TestOutput(t *testing.T) {
	b := newBank()
	three.CheckWithLeases(t, "eventsourced", memory.New(), b.attach, b.run)
}

package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The output must match the comment of the command. The program itself checks what was heard.
func TestOutput(t *testing.T) {
	l := &lobby{}
	three.CheckWithLeases(t, "lobby", memory.New(), l.attach, l.run)
}

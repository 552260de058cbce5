package main

import (
	"testing"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
)

func TestOutput(t *testing.T) {
	p := newPlant()
	three.CheckWithLeases(t, "daemons", memory.New(), p.attach, p.run)
}

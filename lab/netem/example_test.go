package netem_test

import (
	"testing"

	"github.com/concord-go/concord/lab/netem"
)

// A test on real connections gets addresses of its own, and links between them that lose and delay
// packets. New says so if this machine has no network of this kind.
func Example() {
	_ = func(t *testing.T) { // func TestSlowNetwork(t *testing.T)
		_ = netem.New(t, 3)
	}
}

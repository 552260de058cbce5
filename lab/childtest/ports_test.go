package childtest

import (
	"fmt"
	"net"
	"testing"

	"github.com/concord-go/concord/internal/ports"
)

// TestFree_IsTakenUntilTheTestEnds checks that a port is not returned twice while its test runs,
// and can be listened on. Whether it is free afterwards depends on the tests of other packages.
func TestFree_IsTakenUntilTheTestEnds(t *testing.T) {
	seen := map[int]bool{}
	for _, port := range append(ports.Free(t, 100), ports.Free(t, 100)...) {
		if seen[port] {
			t.Errorf("port %d came twice", port)
		}
		seen[port] = true
		at := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if c, err := net.ListenPacket("udp", at); err == nil {
			_ = c.Close()
			t.Errorf("port %d can be claimed by another test", port)
		}
	}
}

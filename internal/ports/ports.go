// Package ports chooses TCP ports for tests that tell several processes where to listen.
package ports

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The kernel gives connections ports from 32,768 on, and could give one away while its process is dead.
// Those below 22,000 are for the examples, which choose their own.
const least, most = 22_000, 32_000

// Free returns n different ports of the loopback address on which nothing listens. Until the test
// ends no other call of Free returns them, in this process or another: each port stays taken for UDP,
// which nothing else here uses.
func Free(t testing.TB, n int) []int {
	t.Helper()
	var out []int
	for tries := 0; len(out) < n; tries++ {
		if tries > 100*n {
			t.Fatalf("ports: %d of %d free ports after %d tries", len(out), n, tries)
		}
		port := least + rand.IntN(most-least) //nolint:gosec // no secret
		if Claim(t, port) {
			out = append(out, port)
		}
	}
	return out
}

// Claim reports whether a port was free. If it was, it is as one that Free has returned.
func Claim(t testing.TB, port int) bool {
	t.Helper()
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	claimed, err := net.ListenPacket("udp", at)
	if err != nil {
		return false
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		_ = claimed.Close()
		return false
	}
	_ = l.Close()
	t.Cleanup(func() { _ = claimed.Close() })
	return true
}

// Package ports chooses TCP ports for tests that configure the ports of several processes.
package ports

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The kernel assigns ports from 32,768 on to connections, and could assign one while its process is
// down. Ports below 22,000 are for the examples, which choose their own.
const least, most = 22_000, 32_000

// Free returns n distinct ports of the loopback address on which nothing listens. No other call of
// Free, in this process or another, returns them until the test ends: Free binds each port for UDP,
// which nothing else in these tests uses.
func Free(t testing.TB, n int) []int {
	t.Helper()
	var out []int
	for tries := 0; len(out) < n; tries++ {
		if tries > 100*n {
			t.Fatalf("ports: %d of %d free ports after %d tries", len(out), n, tries)
		}
		port := least + rand.IntN(most-least)
		if Claim(t, port) {
			out = append(out, port)
		}
	}
	return out
}

// Claim reports whether a port was free, and if so claims it like Free.
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

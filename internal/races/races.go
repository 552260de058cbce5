// Package races reads what the race detector says of the processes that tests start.
package races

import (
	"slices"
	"strings"
)

// upstream are functions of Proto.Actor's remoting that race with each other whatever we do: the flag that stops the
// reader of a stream is written without a lock, a stop does not wait for connections that end, and each start sets
// the logger of all of gRPC, and the list of banned members is read without its lock.
var upstream = []string{
	"remote.(*endpointReader).suspend()", "remote.(*endpointManager).stop", "grpclog.SetLoggerV2", "grpclog.NewLoggerV2()",
	"remote.(*BlockList).IsBlocked()",
}

// Reported returns the reports in what a process has written to its standard error, without those of upstream. A
// report that ends before its last line, since the process was killed, does not count: it may not have come to the
// function that it is known by.
func Reported(stderr string) (out []string) {
	parts := strings.Split(stderr, "==================")
	for _, r := range parts[:len(parts)-1] {
		known := slices.ContainsFunc(upstream, func(f string) bool { return strings.Contains(r, f) })
		if strings.Contains(r, "DATA RACE") && !known {
			out = append(out, r)
		}
	}
	return out
}

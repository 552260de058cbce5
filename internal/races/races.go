// Package races reads the race detector's reports from processes started by tests.
package races

import (
	"slices"
	"strings"
)

// upstream lists functions of Proto.Actor's remoting that race with each other independently of our
// code: the flag that stops the reader of a stream is written without a lock, a stop does not wait
// for closing connections, each start sets the global logger of gRPC, and the list of banned
// members is read without its lock.
var upstream = []string{
	"remote.(*endpointReader).suspend()", "remote.(*endpointManager).stop", "grpclog.SetLoggerV2",
	"grpclog.NewLoggerV2()",
	"remote.(*BlockList).IsBlocked()",
}

// Reported returns the race reports in the standard error of a process, except those of upstream.
// It ignores a report that is incomplete because the process was killed, since the report may not
// yet contain the function that identifies it.
func Reported(stderr string) (out []string) {
	parts := strings.Split(stderr, "==================")
	for _, r := range parts[:len(parts)-1] {
		known := slices.ContainsFunc(upstream, func(f string) bool {
			return strings.Contains(r, f)
		})
		if strings.Contains(r, "DATA RACE") && !known {
			out = append(out, r)
		}
	}
	return out
}

package membership

import "github.com/concord-go/concord/internal/lifecycle"

// Names joins names of members for logs and errors; see lifecycle.Few.
func Names(names []string) string { return lifecycle.Few(names, ", ") }

// Addresses names members by their addresses.
func Addresses(members []Member) string {
	out := make([]string, 0, len(members))
	for _, m := range members {
		out = append(out, m.Address)
	}
	return Names(out)
}

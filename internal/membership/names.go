package membership

import (
	"fmt"
	"strings"
)

// Names joins names of members for logs and errors, and counts those after the first eight: a line
// of a cluster of a thousand members has as many words as one of ten.
func Names(names []string) string {
	const most = 8
	if more := len(names) - most; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Addresses names members by their addresses.
func Addresses(members []Member) string {
	out := make([]string, 0, len(members))
	for _, m := range members {
		out = append(out, m.Address)
	}
	return Names(out)
}

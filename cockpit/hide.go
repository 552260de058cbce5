package cockpit

import (
	"slices"
	"strings"
)

// hidden is the set of names that Config.Hide selects.
type hidden struct {
	names    []string
	prefixes []string
}

func newHidden(patterns []string) (h hidden) {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			h.prefixes = append(h.prefixes, prefix)
		} else {
			h.names = append(h.names, p)
		}
	}
	return h
}

// any reports whether the set is not empty.
func (h hidden) any() bool { return len(h.names)+len(h.prefixes) > 0 }

// has reports whether a name is hidden.
func (h hidden) has(name string) bool {
	return slices.Contains(h.names, name) || h.covers(name) != ""
}

// covers returns the shortest hidden prefix of a name, or a star if the empty prefix is hidden. It
// returns an empty string if no prefix matches.
func (h hidden) covers(name string) (prefix string) {
	for _, p := range h.prefixes {
		switch {
		case p == "":
			return "*"
		case strings.HasPrefix(name, p) && (prefix == "" || len(p) < len(prefix)):
			prefix = p
		}
	}
	return prefix
}

// next returns the next name to look at after a hidden name. It skips all names with the same
// hidden prefix in one step. end reports that all later names are hidden.
func (h hidden) next(name string) (from string, end bool) {
	prefix := h.covers(name)
	switch prefix {
	case "":
		return name + "\x00", false
	case "*":
		return "", true
	}
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xFF {
			return prefix[:i] + string([]byte{prefix[i] + 1}), false
		}
	}
	return "", true
}

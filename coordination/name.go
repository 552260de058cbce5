package coordination

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxName is the length of the longest lease name, in bytes. Every store keeps each valid name of up to that
// length, and keeps it apart from all others.
const MaxName = 512

// checkName returns ErrInvalid for what Session.Lease does not allow as a name.
func (l *Lease) checkName() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: lease %.80q: name "+format, append([]any{ErrInvalid, l.name}, args...)...)
	}
	switch n := len(l.name); {
	case n == 0:
		return bad("is empty, it must have from 1 to %d bytes", MaxName)
	case n > MaxName:
		return bad("has %d bytes, it must have from 1 to %d", n, MaxName)
	case !utf8.ValidString(l.name):
		return bad("is not UTF-8 at byte %d", validBytes(l.name))
	case strings.HasPrefix(l.name, SessionRecords):
		return bad("must not begin with %s", SessionRecords)
	}
	return nil
}

// validBytes is the length of the longest prefix that is UTF-8.
func validBytes(s string) int {
	for i, r := range s {
		if _, width := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && width == 1 {
			return i
		}
	}
	return len(s)
}

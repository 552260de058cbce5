package coordination

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/concord-go/concord/coordination/leasestore"
)

// checkName returns an error that wraps ErrInvalid and says why if name is not a valid lease name.
func checkName(name string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: lease %.80q: name "+format, append([]any{ErrInvalid, name},
			args...)...)
	}
	switch n := len(name); {
	case n == 0:
		return bad("is empty, it must have from 1 to %d bytes", leasestore.MaxName)
	case n > leasestore.MaxName:
		return bad("has %d bytes, it must have from 1 to %d", n, leasestore.MaxName)
	case !utf8.ValidString(name):
		return bad("is not UTF-8 at byte %d", validBytes(name))
	case strings.HasPrefix(name, leasestore.SessionRecords):
		return bad("must not begin with %s", leasestore.SessionRecords)
	}
	return nil
}

// validBytes returns the length of the longest prefix of s that is valid UTF-8.
func validBytes(s string) int {
	for i, r := range s {
		if _, width := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && width == 1 {
			return i
		}
	}
	return len(s)
}

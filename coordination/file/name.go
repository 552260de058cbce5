package file

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	recordSuffix = ".lease"
	lockSuffix   = ".lock"

	// maxPlain leaves room for suffixes within the 255 bytes that file systems allow.
	maxPlain = 200
)

// base maps a lease name to a file name without suffix. Different names get different file names,
// also if the file system ignores case: each byte other than a lower-case letter, digit, '-' or '_'
// becomes '%' and two hexadecimal digits. A name that is too long is hashed; its first letter
// distinguishes it from the others.
func base(name string) string {
	var b strings.Builder
	b.WriteString("n-")
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
	}
	if b.Len() <= maxPlain {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return "h-" + hex.EncodeToString(sum[:])
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

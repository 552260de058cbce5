package distributeddata

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// durableKeys is the parsed list of Config.Durable: it decides which keys are durable. nil means
// none.
type durableKeys struct {
	names    map[string]bool // none begins with one of the prefixes
	prefixes []string        // ascending; none begins with another
	digest   uint64          // of names and prefixes; not 0
}

// newChoice parses list. Its error names the entry that is not valid.
func newDurableKeys(list []string) (*durableKeys, error) {
	if len(list) == 0 {
		return nil, nil
	}
	c, had := &durableKeys{names: map[string]bool{}}, map[string]bool{}
	for _, entry := range list {
		if why := wrongEntry(entry); why != "" {
			return nil, fmt.Errorf("%w: Durable: %s", ErrInvalid, why)
		}
		if had[entry] {
			return nil, fmt.Errorf("%w: Durable: %q is listed twice", ErrInvalid, entry)
		}
		had[entry] = true
		if prefix, ok := strings.CutSuffix(entry, "*"); ok {
			c.prefixes = append(c.prefixes, prefix)
		} else {
			c.names[entry] = true
		}
	}
	c.reduce()
	c.sign()
	return c, nil
}

// wrongEntry says what is wrong with an entry of the list; it returns "" for a valid one.
func wrongEntry(entry string) string {
	switch name := strings.TrimSuffix(entry, "*"); {
	case entry == "":
		return `an entry is empty; "*" stands for all keys`
	case len(name) > history.MaxKey:
		return fmt.Sprintf("an entry has %d bytes, over the limit of %d", len(name), history.MaxKey)
	case !utf8.ValidString(entry):
		return fmt.Sprintf("%q is not UTF-8", entry)
	case strings.Contains(name, "*"):
		return fmt.Sprintf("%q has a star that is not its last character", entry)
	}
	return ""
}

// reduce removes entries that other entries cover, so that lists that choose the same keys become
// equal.
func (c *durableKeys) reduce() {
	slices.Sort(c.prefixes)
	kept := c.prefixes[:0]
	for _, p := range c.prefixes {
		if len(kept) == 0 || !strings.HasPrefix(p, kept[len(kept)-1]) {
			kept = append(kept, p)
		}
	}
	c.prefixes = kept
	maps.DeleteFunc(c.names, func(name string, _ bool) bool { return c.covers(name) })
}

// sign sets the digest.
func (c *durableKeys) sign() {
	h := sha256.New()
	for _, p := range c.prefixes {
		fmt.Fprintf(h, "%q*\n", p)
	}
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		fmt.Fprintf(h, "%q\n", name)
	}
	c.digest = max(binary.BigEndian.Uint64(h.Sum(nil)), 1)
}

// covers reports whether text begins with one of the prefixes. Only the last prefix that sorts at
// or before text can match, since no prefix begins with another.
func (c *durableKeys) covers(text string) bool {
	i, found := slices.BinarySearch(c.prefixes, text)
	return found || i > 0 && strings.HasPrefix(text, c.prefixes[i-1])
}

// all reports whether every key is durable.
func (c *durableKeys) all() bool { return c != nil && c.covers("") }

// durable reports whether key is durable.
func (c *durableKeys) durable(key string) bool {
	return c != nil && (c.covers(key) || c.names[key])
}

// below reports whether names that begin with text can be volatile, and whether they can be
// durable.
func (c *durableKeys) below(text string) (volatile, durable bool) {
	switch {
	case c == nil:
		return true, false
	case c.covers(text):
		return false, true
	}
	i, _ := slices.BinarySearch(c.prefixes, text)
	if i < len(c.prefixes) && strings.HasPrefix(c.prefixes[i], text) {
		return true, true
	}
	for name := range c.names {
		if strings.HasPrefix(name, text) {
			return true, true
		}
	}
	return true, false
}

// sum returns the digest, or 0 for a nil one.
func (c *durableKeys) sum() uint64 {
	if c == nil {
		return 0
	}
	return c.digest
}

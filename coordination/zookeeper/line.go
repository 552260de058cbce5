package zookeeper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place is a child of a lease's node: one entry in the line of the lock recipe, ordered by the
// number that ZooKeeper assigned.
type place struct {
	name   string
	number int64
	tag    string // of the coordination session, "" for other programs
	maker  string // the store that made it, and its number within that store
}

// Places of this module never have equal names, so a place that exists belongs to the present node.
var ours = regexp.MustCompile(`^concord-([0-9a-f]{16})-([0-9a-f]{16}-[0-9a-f]+)-lock-`)

// tagOf returns a hash of a nonce, for names.
func tagOf(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:8])
}

func prefixOf(tag, maker string) string { return "concord-" + tag + "-" + maker + "-lock-" }

// numbered returns the name of a sequential child of a node that has had n children before.
func numbered(prefix string, n uint32) string { return fmt.Sprintf("%s%010d", prefix, n) }

// placeOf parses names as zk.Lock does, which also knows those of the Python client.
func placeOf(name string) (place, error) {
	i, skip := strings.LastIndex(name, "lock-"), len("lock-")
	if i < 0 {
		i, skip = strings.LastIndex(name, "__"), len("__")
	}
	if i < 0 {
		return place{}, fmt.Errorf("child %.200q is not in line for a lock", name)
	}
	number, err := strconv.ParseInt(name[i+skip:], 10, 32)
	if err != nil {
		return place{}, fmt.Errorf("child %.200q is not in line for a lock: %w", name, err)
	}
	p := place{name: name, number: number}
	if m := ours.FindStringSubmatch(name); m != nil {
		p.tag, p.maker = m[1], m[2]
	}
	return p, nil
}

func (p place) foreign() bool { return p.tag == "" }

// lineOf returns the places sorted by number.
func lineOf(children []string) ([]place, error) {
	line := make([]place, 0, len(children))
	for _, name := range children {
		p, err := placeOf(name)
		if err != nil {
			return nil, err
		}
		line = append(line, p)
	}
	slices.SortFunc(line, func(a, b place) int { return cmp.Compare(a.number, b.number) })
	return line, nil
}

package zookeeper

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
)

// mark is what a version says. The transaction that wrote the record makes it unlike all others of the name. Writes
// rest on the data version, which is all that ZooKeeper compares; it begins again with a deleted node, and so
// each write also rests on a place that is of the same node.
type mark struct {
	written int64 // transaction of the record's last change
	data    int32 // version of the node's data
	holder  string
	// Without a holder: how many children the node has had. If there are more, somebody was in line since,
	// and may have had a token.
	had uint32
}

// children counts all that a node has ever had, twice and without what overflows: ZooKeeper's version of
// children counts each once when it is made and once when it goes.
func children(s *zk.Stat) uint32 { return uint32(s.Cversion) + uint32(s.NumChildren) }

// countAt is what children told just before a place of this number was made.
func countAt(number int64) uint32 { return 2 * uint32(number) }

func heldBy(s *zk.Stat, holder string) coordination.Version {
	return coordination.Version(fmt.Sprintf("%x.%d.%s", s.Mzxid, s.Version, holder))
}

func free(s *zk.Stat) coordination.Version {
	return coordination.Version(fmt.Sprintf("%x.%d.+%d", s.Mzxid, s.Version, children(s)))
}

// locked is a version that no write may rest on, different at each look: a lock of others is held, and nothing
// shows whether it is alive but its being there.
func locked(s *zk.Stat) coordination.Version {
	return coordination.Version(fmt.Sprintf("%x.%d.~%s", s.Mzxid, s.Version, rand.Text()))
}

// parse is false for versions that cannot be the present one.
func parse(v coordination.Version) (m mark, ok bool) {
	parts := strings.SplitN(string(v), ".", 3)
	if len(parts) != 3 || strings.HasPrefix(parts[2], "~") {
		return mark{}, false
	}
	written, err := strconv.ParseInt(parts[0], 16, 64)
	data, err2 := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || err2 != nil || data < 0 {
		return mark{}, false
	}
	m = mark{written: written, data: int32(data)}
	if had, blank := strings.CutPrefix(parts[2], "+"); blank {
		n, err := strconv.ParseUint(had, 10, 32)
		m.had = uint32(n)
		return m, err == nil
	}
	m.holder = parts[2]
	return m, ours.MatchString(m.holder)
}

package zookeeper

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// mark is a decoded version. The transaction that created the node and the version of its data make
// it different from all others of the name. ZooKeeper compares only the version of the data, which
// starts again when a node is deleted, so each write also depends on a place of the same node, or
// checks the node afterwards.
type mark struct {
	created int64 // transaction that created the node
	data    int32 // version of the node's data
	holder  string
	token   coordination.Token // of the holder's tenure
	// Without a holder: the number of places that the node has had. If there are more by now,
	// another place has been in line since, and may have had a token.
	had uint32
}

// places returns the number of places that a node has ever had: ZooKeeper's version of children
// counts each child once when it is created and once when it is removed.
func places(s *zk.Stat) uint32 { return (uint32(s.Cversion) + uint32(s.NumChildren)) / 2 }

func heldBy(s *zk.Stat, token coordination.Token, holder string) leasestore.Version {
	return leasestore.Version(fmt.Sprintf("%x.%d.%d.%s", s.Czxid, s.Version, token, holder))
}

func free(s *zk.Stat) leasestore.Version {
	return leasestore.Version(fmt.Sprintf("%x.%d.+%d", s.Czxid, s.Version, places(s)))
}

// locked returns a version on which no write may depend; it is different at each read. A lock of
// another program is held, and ZooKeeper shows only through its presence whether it is alive.
func locked(s *zk.Stat) leasestore.Version {
	return leasestore.Version(fmt.Sprintf("%x.%d.~%s", s.Czxid, s.Version, rand.Text()))
}

// parse returns false for versions that cannot be the present one.
func parse(v leasestore.Version) (m mark, ok bool) {
	parts := strings.SplitN(string(v), ".", 4)
	if len(parts) < 3 {
		return mark{}, false
	}
	created, err := strconv.ParseInt(parts[0], 16, 64)
	data, err2 := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || err2 != nil || data < 0 {
		return mark{}, false
	}
	m = mark{created: created, data: int32(data)}
	if had, blank := strings.CutPrefix(parts[2], "+"); blank {
		n, err := strconv.ParseUint(had, 10, 32)
		m.had = uint32(n)
		return m, err == nil && len(parts) == 3
	}
	token, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || len(parts) != 4 {
		return mark{}, false
	}
	m.token, m.holder = coordination.Token(token), parts[3]
	return m, ours.MatchString(m.holder)
}

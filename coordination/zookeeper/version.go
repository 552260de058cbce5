package zookeeper

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
)

// mark is what a version says. The transaction that made the node and the version of its data make it unlike all
// others of the name. ZooKeeper compares the version of the data alone, which begins again with a deleted node, so each
// write also rests on a place that is of the same node, or looks afterwards.
type mark struct {
	created int64 // transaction that made the node
	data    int32 // version of the node's data
	holder  string
	token   coordination.Token // of the holder's tenure
	// Without a holder: how many places the node has had. If there are more, somebody was in line since,
	// and may have had a token.
	had uint32
}

// places counts all that a node has ever had: ZooKeeper's version of children counts each once when it is made and
// once when it goes.
func places(s *zk.Stat) uint32 { return (uint32(s.Cversion) + uint32(s.NumChildren)) / 2 }

func heldBy(s *zk.Stat, token coordination.Token, holder string) coordination.Version {
	return coordination.Version(fmt.Sprintf("%x.%d.%d.%s", s.Czxid, s.Version, token, holder))
}

func free(s *zk.Stat) coordination.Version {
	return coordination.Version(fmt.Sprintf("%x.%d.+%d", s.Czxid, s.Version, places(s)))
}

// locked is a version that no write may rest on, different at each look: a lock of others is held, and nothing
// shows whether it is alive but its being there.
func locked(s *zk.Stat) coordination.Version {
	return coordination.Version(fmt.Sprintf("%x.%d.~%s", s.Czxid, s.Version, rand.Text()))
}

// parse is false for versions that cannot be the present one.
func parse(v coordination.Version) (m mark, ok bool) {
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

package membership

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strings"
)

// identity is what this process knows of itself before it is listed, and which of the members
// listed at its address it is.
type identity struct {
	cluster     string
	address     string
	systemID    string // a hint as to which id is ours if several are listed at our address
	incarnation uint64
	key         []byte // of our process: for the proofs

	arrived map[string]int // ids listed at our address, by the number of the first event
	event   int            // number of the next topology event
}

// find returns the member at our address. If several are listed there, one is ours and the
// others are former processes that the provider has not dropped yet. Ours is the one whose id
// equals the id of our system, as with most providers; otherwise the one listed last.
func (i *identity) find(members []listed) (listed, bool) {
	var at []listed
	arrived := map[string]int{}
	for _, m := range members {
		if m.Address != i.address {
			continue
		}
		at = append(at, m)
		arrived[m.ID] = i.event
		if n, ok := i.arrived[m.ID]; ok {
			arrived[m.ID] = n
		}
	}
	i.event++
	i.arrived = arrived
	if len(at) == 0 {
		return listed{}, false
	}
	named := func(m listed) int {
		switch {
		case m.ID == i.systemID:
			return 2
		case i.systemID != "" && strings.HasSuffix(m.ID, "@"+i.systemID):
			return 1
		}
		return 0
	}
	return slices.MaxFunc(at, func(a, b listed) int {
		return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(arrived[a.ID], arrived[b.ID]),
			strings.Compare(a.ID, b.ID))
	}), true
}

// proofFor returns our proof for the member at an address.
func (i *identity) proofFor(address string) string {
	m := hmac.New(sha256.New, i.key)
	_, _ = m.Write([]byte(i.address + "\x00" + address))
	return string(m.Sum(nil)[:proofSize])
}

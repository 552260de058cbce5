package membership

import (
	"cmp"
	"slices"
	"strings"
)

// RolePrefix marks a kind that is only a role. The dot keeps it a legal Kubernetes label.
const RolePrefix = "role."

// Member is one incarnation of one member. It is a value; Roles is shared and never written.
type Member struct {
	// ID is the provider's id of the member. With some providers it outlives the process.
	ID string
	// Address is where the member's actor system is reached, host:port.
	Address string
	// Incarnation tells one process from the next with the same id; 0 until its first hello.
	Incarnation uint64
	// Stamp orders members by age; 0 while it is not known.
	Stamp uint64
	// Roles are sorted.
	Roles []string
}

// HasRole tells whether the member announces role. Every member has the role "".
func (m Member) HasRole(role string) bool {
	return role == "" || slices.Contains(m.Roles, role)
}

// Same tells whether both are the same incarnation of the same member, and known to be.
func (m Member) Same(o Member) bool {
	return m.ID == o.ID && m.Incarnation == o.Incarnation && m.Incarnation != 0
}

// View is what one member knows of its cluster at one moment. It is immutable and may be read
// from any goroutine.
type View struct {
	// Cluster is the name of the cluster, empty on a virtual network.
	Cluster string
	// Self is this member. After its removal, it is what it was before.
	Self Member
	// Members are all members, this one included, sorted by ID. Not to be written to.
	Members []Member
	// Hash is equal for views with the same members in the same order of age.
	Hash uint64
	// Removed says that this life of the member has ended, see Cause. It is final.
	Removed bool
	// Cause is why: ErrDropped, ErrExpelled or ErrGaveWay; nil while the member is in.
	Cause error
}

// ByAge returns the members with role, oldest first. Members whose stamp is not known are left out.
// The slice is the caller's.
func (v *View) ByAge(role string) []Member {
	var out []Member
	for _, m := range v.Members {
		if m.Stamp != 0 && m.HasRole(role) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

// Oldest returns the first of ByAge. It is false when no member with role has a known stamp.
func (v *View) Oldest(role string) (Member, bool) {
	var oldest Member
	found := false
	for _, m := range v.Members {
		if m.Stamp != 0 && m.HasRole(role) && (!found || byAge(m, oldest) < 0) {
			oldest, found = m, true
		}
	}
	return oldest, found
}

// Find returns the member with this id.
func (v *View) Find(id string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(v.Members, id, func(m Member, id string) int {
		return strings.Compare(m.ID, id)
	})
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// FindAddress returns the member at this address. If several are listed there, it is the one with
// the newest stamp.
func (v *View) FindAddress(address string) (Member, bool) {
	var newest Member
	found := false
	for _, m := range v.Members {
		if m.Address == address && (!found || byAge(m, newest) > 0) {
			newest, found = m, true
		}
	}
	return newest, found
}

// byAge orders by (stamp, id), so that it is total.
func byAge(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), strings.Compare(a.ID, b.ID))
}

// equal ignores the cluster name, which does not change.
func (v *View) equal(o *View) bool {
	return v != nil && o != nil && v.Removed == o.Removed && v.Self.ID == o.Self.ID &&
		slices.EqualFunc(v.Members, o.Members, func(a, b Member) bool {
			return a.ID == b.ID && a.Address == b.Address && a.Incarnation == b.Incarnation &&
				a.Stamp == b.Stamp && slices.Equal(a.Roles, b.Roles)
		})
}

// hash is FNV-1a over every field of every member. Strings are preceded by their length.
func hash(members []Member) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	number := func(n uint64) {
		for range 8 {
			h = (h ^ n&0xff) * prime
			n >>= 8
		}
	}
	text := func(s string) {
		number(uint64(len(s)))
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
	}
	for _, m := range members {
		text(m.ID)
		text(m.Address)
		number(m.Incarnation)
		number(m.Stamp)
		number(uint64(len(m.Roles)))
		for _, r := range m.Roles {
			text(r)
		}
	}
	return h
}

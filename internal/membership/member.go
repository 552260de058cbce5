package membership

import (
	"cmp"
	"slices"
	"strings"
)

// RolePrefix marks a kind that is only a role. The dot keeps the kind a legal Kubernetes label.
const RolePrefix = "role."

// Member is one incarnation of one member. It is a value; Roles is shared and immutable.
type Member struct {
	// ID is the provider's id of the member. With some providers it survives the process.
	ID string
	// Address is the address of the member's actor system, host:port.
	Address string
	// Incarnation distinguishes processes with the same id; it is 0 until the first hello.
	Incarnation uint64
	// Stamp orders members by age; it is 0 while unknown.
	Stamp uint64
	// AppVersion is the version of the application; "" if the member announces none.
	AppVersion string
	// Roles are sorted.
	Roles []string
}

// HasRole reports whether the member announces role. Every member has the role "".
func (m Member) HasRole(role string) bool {
	return role == "" || slices.Contains(m.Roles, role)
}

// View is one member's view of its cluster at one moment. It is immutable and safe for concurrent
// use.
type View struct {
	// Cluster is the name of the cluster, empty on a virtual network.
	Cluster string
	// Self is this member. After its removal it keeps its last value.
	Self Member
	// Members are all members, including this one, sorted by ID. The slice must not be modified.
	Members []Member
	// Hash is equal for views with the same members in the same order of age.
	Hash uint64
	// Removed means that this incarnation of the member has ended, see Cause. It is final.
	Removed bool
	// Cause is the reason: ErrDropped, ErrExpelled or ErrSteppedDown; nil while the member is in
	// the cluster.
	Cause error
}

// ByAge returns the members with role, oldest first, without those whose stamp is unknown. The
// caller owns the slice.
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

// Oldest returns the first member of ByAge, or false if no member with role has a known stamp.
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

// Find returns the member with the given id.
func (v *View) Find(id string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(v.Members, id, func(m Member, id string) int {
		return strings.Compare(m.ID, id)
	})
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// FindAddress returns the member at the given address. If several are listed there, it returns the
// one with the newest stamp.
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

// byAge orders members by (stamp, id), a total order.
func byAge(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), strings.Compare(a.ID, b.ID))
}

// equal compares views without the cluster name, which does not change.
func (v *View) equal(o *View) bool {
	return v != nil && o != nil && v.Removed == o.Removed && v.Self.ID == o.Self.ID &&
		slices.EqualFunc(v.Members, o.Members, func(a, b Member) bool {
			return a.ID == b.ID && a.Address == b.Address && a.Incarnation == b.Incarnation &&
				a.Stamp == b.Stamp && a.AppVersion == b.AppVersion && slices.Equal(a.Roles, b.Roles)
		})
}

// hash returns the FNV-1a hash of every field of every member. Strings are preceded by their
// length.
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
		text(m.AppVersion)
	}
	return h
}

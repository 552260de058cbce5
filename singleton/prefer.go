package singleton

import (
	"cmp"
	"slices"

	"github.com/concord-go/concord/internal/membership"
)

// preferred returns members, which are sorted by age, in the order in which this member wants them
// to host: those of the newest version first, then those with the preferred role, then the oldest.
// It returns nil if age alone decides.
func (c Config) preferred(byAge []membership.Member) []membership.Member {
	if !c.PreferNewest && c.PreferRole == "" {
		return nil
	}
	out := slices.Clone(byAge)
	slices.SortStableFunc(out, func(a, b membership.Member) int {
		version := 0
		if c.PreferNewest {
			version = membership.CompareVersions(b.AppVersion, a.AppVersion)
		}
		return cmp.Or(version, cmp.Compare(c.rank(a), c.rank(b)))
	})
	return out
}

// rank is lower for members with the preferred role.
func (c Config) rank(m membership.Member) int {
	if c.PreferRole != "" && m.HasRole(c.PreferRole) {
		return 0
	}
	return 1
}

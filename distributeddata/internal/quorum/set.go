package quorum

import (
	"errors"
	"fmt"
	"slices"
)

// Set is a memory as one of its members sees it: the members that quorums are counted over.
type Set struct {
	Memory
	own      string // the name of this member
	least    int    // quorums count at least so many
	recorded bool   // the memory is that of a record in a store [M9]
}

// NewSet returns the set of a member that remembers none. Quorums count at least so many members;
// recorded says that the membership is a record in a store.
func NewSet(own string, least int, recorded bool) Set {
	return Set{own: own, least: least, recorded: recorded}
}

// Own returns what is remembered of this member.
func (s Set) Own() Member { return s.Of(s.own) }

// Least returns the number of members that quorums count at least.
func (s Set) Least() int { return s.least }

// Recorded reports whether the membership is a record in a store.
func (s Set) Recorded() bool { return s.recorded }

// Size returns the number of members that quorums are counted over.
func (s Set) Size() int { return max(s.size, s.least, 1) }

// Beside returns the number of members that quorums are counted over without this one, which may
// have been forgotten already.
func (s Set) Beside() int {
	if s.Own().Counts() {
		return s.Size() - 1
	}
	return s.Size()
}

// Clustered reports whether any member is known to count, or to have counted.
func (s Set) Clustered() bool { return s.size > 0 || s.gone > 0 }

// Sole reports whether the record says that only one member counts. When that member goes, no other
// can agree: the record then says that no member counts, and the data that the member held is lost,
// except for what it has handed over.
func (s Set) Sole(name string) bool {
	return s.recorded && s.size == 1 && s.Of(name).Counts()
}

// MayGo reports whether enough members would remain without a member to agree that it is gone [M5].
func (s Set) MayGo(name string) bool {
	return s.Sole(name) || s.staying(name) >= MajorityOf(s.without(name))
}

// staying returns the number of members that vote, without a given one.
func (s Set) staying(without string) int {
	stay := s.Count(In)
	if s.Of(without).Rank == In {
		stay--
	}
	return stay
}

// without returns the number of members that quorums are counted over without a given one.
func (s Set) without(name string) int {
	n := s.size
	if s.Of(name).Counts() {
		n--
	}
	return max(n, s.least, 1)
}

// Needed returns how many of the remaining members must cover what had been seen before a member is
// gone: a majority, or all of them if they are fewer than that. Every later quorum then contains
// one of them, or a member that one of them has refilled. Members that are going do not count,
// since all of them may be gone at once.
func (s Set) Needed(victim string) int {
	if s.Sole(victim) {
		return 0
	}
	stay := s.staying(victim)
	return max(1, min(stay, MajorityOf(max(stay, s.least))))
}

// MayShrink reports whether forgetting a member would change anything, and enough members would
// remain to agree.
func (s Set) MayShrink(m Member) bool {
	return (m.Rank == Joining || s.size > s.least) && s.MayGo(m.Name)
}

// Names returns the names of the counted members.
func (s Set) Names() (names []string) {
	for _, m := range s.all {
		if m.Counts() {
			names = append(names, m.Name)
		}
	}
	return names
}

// Errors of members with a different kind of membership, and of a record.
var (
	errNoRecord = errors.New(
		"its membership is not a record in a store, but that of this member is: the configurations differ")
	errRecord = errors.New(
		"its membership is a record in a store, but that of this member is not: the configurations differ")
	errOtherCluster = errors.New(
		"it belongs to another cluster: there are two stores, or the record was removed and created again")
	errRecordRemoved = errors.New("the record was removed: the next change writes it again")
)

// Hear returns the memory that results from hearing m. The memories of one cluster's record are
// ordered, so the later one is kept. Two memories with the same epoch, which only a store that lost
// writes can cause, are merged.
func (s Set) Hear(m Memory) (Memory, error) {
	switch own := s.Memory; {
	case !s.recorded && m.Epoch == 0:
		return own.Merge(m), nil
	case !s.recorded:
		return own, errRecord
	case m.Epoch == 0 && len(m.all) > 0:
		return own, errNoRecord
	case m.Epoch == 0 || m.Cluster == own.Cluster && m.Epoch < own.Epoch:
		return own, nil
	case own.Epoch > 0 && m.Cluster != own.Cluster:
		return own, fmt.Errorf("%w: cluster %016x, epoch %d; here cluster %016x, epoch %d",
			errOtherCluster, m.Cluster, m.Epoch, own.Cluster, own.Epoch)
	case m.Epoch == own.Epoch && m.digest != own.digest:
		both := own.Merge(m)
		both.Chain = own.Chain
		return both, nil
	}
	return m, nil
}

// HearRecord returns the memory that results from reading the record; no version stands for no
// record. An alarm means that the record is outdated or was removed, and that the next change
// repairs it. An error means that the record cannot be used.
func (s Set) HearRecord(version string, record []byte) (m Memory, alarm, err error) {
	if version == "" {
		if s.Epoch > 0 {
			alarm = fmt.Errorf("%w; epoch %d is remembered", errRecordRemoved, s.Epoch)
		}
		return s.Memory, alarm, nil
	}
	if m, err = ReadRecord(record); err != nil {
		return s.Memory, nil, err
	}
	if m.Epoch < s.Epoch && m.Cluster == s.Cluster {
		alarm = fmt.Errorf("the record went back to epoch %d from the remembered epoch %d: the store lost writes, or an "+
			"old copy was restored; the next change writes it again", m.Epoch, s.Epoch)
	}
	if m, err = s.Hear(m); err != nil {
		return s.Memory, nil, fmt.Errorf("record: %w", err)
	}
	return m, alarm, nil
}

// NextRecord returns the memory that a record holds after m has been written to it, and its text.
// If there is no record yet, fresh becomes the number of the cluster.
func (s Set) NextRecord(m Memory, fresh func() uint64) (next Memory, text []byte, err error) {
	next = Remember(prune(slices.Clone(m.all), maxGoneRecorded))
	next.Chain = Chain{s.Epoch + 1, s.Cluster}
	if next.Cluster == 0 {
		next.Cluster = fresh()
	}
	text, err = next.Text()
	return next, text, err
}

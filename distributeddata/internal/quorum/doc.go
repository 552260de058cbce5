// Package quorum holds the members that quorums are counted over. A Memory is what one replica
// remembers of them: an immutable set that only grows, so replicas that hear the same reach the
// same memory [M1]. Nothing here knows which members can be reached, what they have said, or the
// time: the view decides nothing.
//
// A Set is a memory as one of its members sees it: how many members a quorum is counted over, and
// whether one of them may go. It judges what other members, or the record, say.
//
// A member passes through ranks, and under one version its rank only rises:
//
//	Absent ─▶ Joining ─▶ In ─▶ Going ─▶ Gone ─▶ (the next version) In
//
// Members that are In or Going are counted; those that are Going no longer vote. If the membership
// is a record in a store [M9], the text of the record is that of a memory, and a Chain orders the
// memories of one cluster.
package quorum

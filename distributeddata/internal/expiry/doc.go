// Package expiry says when entries expire, and which member deletes them. It is deterministic: a table is told what
// is known of entries, and the time, and returns what its member is to do.
//
// An entry carries a stamp, the wall clock of a member that used it. A use makes a new stamp only if the present one is
// older than a quarter of the entry's time to live, so that an entry costs its members four small updates in that time at
// the most, however often it is used. A stamp therefore stands for uses up to a quarter later, and an entry expires when
// its stamp is older than five quarters of its time to live and the skew of the clocks [R24].
//
// All times are in milliseconds, moments since 1970.
package expiry

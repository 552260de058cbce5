// Package expiry determines when entries expire, and which member deletes them. It is
// deterministic: a table is given what is known of entries, and the time, and returns what its
// member has to do.
//
// An entry carries a stamp: the wall-clock time of a member that used it. A use makes a new stamp
// only if the present one is older than a quarter of the entry's time to live, so that an entry
// costs its members at most four small updates in that time, however often it is used. A stamp
// therefore stands for uses up to a quarter later, and an entry expires when its stamp is older
// than five quarters of its time to live plus the skew of the clocks [R31].
//
// Then the members of the view have turns to delete it, in the order of a hash of the key and the
// member, each a turn after the one before. A stamp of the future counts from when it was seen.
//
// All times are in milliseconds; moments count from 1970.
package expiry

// Package pmap is an immutable ordered map from byte strings to values: a
// persistent B+tree whose keys are packed, all keys of a node in one string.
//
//	var m pmap.Map[int]
//	m = m.Put("a/1", 1).Put("a/2", 2).Put("b/1", 3)
//	old := m                        // a snapshot costs one word
//	m = m.Delete("a/1")
//	for k, v := range m.Prefix("a/") {
//		fmt.Println(k, v)       // a/2 2
//	}
//	fmt.Println(old.CountPrefix("a/")) // 2
//
// Every update copies the nodes on the path from the root to one leaf and shares all others with
// the previous version. Two versions of one map can therefore be compared in time proportional to
// their difference: see Diff.
//
// # Guarantees
//
//   - A Map is immutable. Any number of goroutines may read it and derive from it without locks.
//     Values are not copied: a V that holds a pointer shares its target between all versions.
//   - Put, Delete, DeletePrefix, Get, At and CountPrefix take O(log n).
//   - Get, At and CountPrefix do not allocate; iteration does not allocate per element.
//   - The map does not retain the byte slices passed to Put and Add.
//
// # Duties of the caller
//
//  1. Keys returned by All, Prefix, From, At and Diff are substrings of their node. Reading them is
//     free, but a retained key keeps all keys of its leaf in memory, about 1 kB: use strings.Clone
//     for keys that outlive the loop.
//  2. Two maps built separately share no nodes. Same then returns false, and Diff reads both
//     completely.
//
// # Shape
//
// A leaf holds up to 16 elements and an inner node up to 32 children. A leaf of more than two
// elements holds at most 1 kB of keys, so that an update does not copy many long keys. The map is
// designed for keys of up to about 256 bytes. Longer keys work, but a Put copies the long keys in
// the same leaf. A map of up to 16 short elements is a single leaf, in effect a sorted slice.
package pmap

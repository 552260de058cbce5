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
// Every update copies the nodes on the path from the root to one leaf and
// shares all others with the version it came from. Diff makes use of that: two
// versions of one map are compared in time proportional to what differs.
//
// # Guarantees
//
//   - A Map is never written after it is returned. Any number of goroutines may
//     read it and derive from it without locks. Values are the caller's: a V
//     that holds a pointer shares what it points to between all versions.
//   - Put, Delete, DeletePrefix, Get, At and CountPrefix take O(log n).
//   - Get, At and CountPrefix do not allocate, iteration does not per element.
//   - The map keeps none of the bytes handed to Put and Add.
//
// # Duties of the caller
//
//  1. Keys that come out of All, Prefix, From, At and Diff are substrings of the
//     node they lie in. Reading them is free, but a key that is kept holds all
//     keys of its leaf in memory, about 1 kB: strings.Clone what outlives the loop.
//  2. Two maps built apart share no node. Same then says false and Diff reads
//     both from end to end.
//
// # Shape
//
// A leaf holds up to 16 elements and an inner node up to 32 children. A leaf of
// more than two elements holds at most 1 kB of keys, so that long keys do not
// make each update copy much. The map is made for keys up to some 256 bytes;
// longer ones are correct, but a Put copies the long keys that share the leaf.
// A map of up to 16 short elements is a single leaf, in effect a sorted slice.
package pmap

package pmap

import "unsafe"

// unsafeString returns a string that changes with b, to see who keeps it.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

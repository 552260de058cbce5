package pmap

import "unsafe"

// unsafeString returns a string that changes with b, to detect retained bytes.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

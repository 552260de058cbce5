//go:build linux || darwin

package disk

import "golang.org/x/sys/unix"

// FreeSpace returns the number of bytes that this user may still write.
func FreeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the type of Bsize depends on the system
}

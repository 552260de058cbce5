//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// blocks returns the disk space, in bytes, used by the files of a directory.
func blocks(dir string) (total int64, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		var s syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, f.Name()), &s); err != nil {
			return 0, err
		}
		total += s.Blocks * 512
	}
	return total, err
}

package disk

import (
	"errors"
	"os"
	"path/filepath"
)

// private takes the access of others to a directory and its files. Databases create files that
// everybody may read.
func private(dir string) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	err = restrict(dir)
	for _, f := range files {
		if f.Type().IsRegular() {
			err = errors.Join(err, restrict(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

func restrict(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return os.Chmod(path, info.Mode()&^0o077)
}

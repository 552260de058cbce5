package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Copy copies the files of a directory into another one, for this user only. It writes nothing into
// the directory, and returns store.ErrLocked if a store has it open.
func Copy(to, dir string) error {
	anchor, err := os.Open(filepath.Join(dir, AnchorName))
	if err != nil {
		return explain(dir, err)
	}
	defer func() { _ = anchor.Close() }() // it was read only, and that unlocks it
	if err := lock(anchor); err != nil {
		return explain(dir, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return explain(dir, err)
	}
	for _, f := range files {
		from := filepath.Join(dir, f.Name())
		if info, err := os.Stat(from); err != nil || !info.Mode().IsRegular() {
			continue // such as lost+found; a file of the store is missing in the copy then
		}
		if err := copyFile(filepath.Join(to, f.Name()), from); err != nil {
			return fmt.Errorf("copy of directory %s in %s: %w", dir, to, err)
		}
	}
	return nil
}

// copyFile leaves holes where the file has zeros: a log has its full size before it is written.
func copyFile(to, from string) (err error) {
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read only
	out, err := os.OpenFile(filepath.Clean(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := out.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return out.Truncate(at)
		case err != nil:
			return err
		}
	}
}

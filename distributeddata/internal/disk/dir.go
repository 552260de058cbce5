package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/concord-go/concord/distributeddata/store"
)

// prepare creates the directory if it does not exist, and returns an error if it is not suitable
// for rows. It does not touch existing files. rows reports whether there are files of the engine.
func prepare(dir string, ours func(name string) bool) (rows bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	if open := info.Mode().Perm() & 0o022; open != 0 {
		return false, fmt.Errorf("%w: others may write to it (mode %o): chmod go-w it",
			store.ErrInvalid, info.Mode().Perm())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	anchored := false
	var left, foreign []string
	for _, f := range files {
		switch name := f.Name(); {
		case name == AnchorName:
			anchored = true
		case name == "lost+found": // in the root of a file system
		case ours(name):
			left = append(left, name)
		default:
			foreign = append(foreign, name)
		}
	}
	switch {
	case anchored:
	case len(foreign) > 0:
		return false, fmt.Errorf("%w: it holds files of something else (%s): choose another directory",
			store.ErrForeign, some(foreign))
	case len(left) > 0:
		return false, fmt.Errorf("%w: it has no file %s, but %s: bring that file back from a copy",
			store.ErrCorrupt, AnchorName, some(left))
	}
	return len(left) > 0, nil
}

func some(names []string) string {
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3:3], fmt.Sprintf("%d more", len(names)-3))
	}
	return strings.Join(names, ", ")
}

// explain adds the directory and advice to an error of opening it.
func explain(dir string, err error) error {
	var advice string
	switch {
	case errors.Is(err, store.ErrLocked):
		advice = "stop the process that has it open, or give each member its own"
	case errors.Is(err, store.ErrCorrupt):
		advice = "move it away, and the other replicas fill a new one; nothing was deleted"
	case errors.Is(err, syscall.EROFS):
		err, advice = fmt.Errorf("%w: %w", store.ErrInvalid, err),
			"mount its file system for writing"
	case errors.Is(err, fs.ErrPermission):
		err, advice = fmt.Errorf("%w: %w", store.ErrInvalid, err),
			fmt.Sprintf("make user %d its owner", os.Getuid())
	case errors.Is(err, syscall.ENOSPC):
		err, advice = fmt.Errorf("%w: %w", store.ErrFull, err), "make room first"
	default:
		return fmt.Errorf("directory %s: %w", dir, err)
	}
	return fmt.Errorf("directory %s: %w: %s", dir, err, advice)
}

// KindOf returns the kind of store that a directory claims to be of. It changes nothing.
func KindOf(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, AnchorName))
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, headerSize))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	kind, _, _ := strings.Cut(strings.TrimPrefix(line, "concord rows, "), ", format ")
	return kind, nil
}

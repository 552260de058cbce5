package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Store keeps leases in a directory. It may be used by many goroutines and sessions, and its
// directory by many Stores and processes. Use Open.
type Store interface {
	leasestore.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.Documents

	// Close closes the directory. Close the sessions on the store first.
	Close() error
}

type store struct {
	root *os.Root
	dir  string // absolute
}

// Open opens the directory, and creates it if it does not exist; its parent must exist. Open
// removes the records of crashed sessions that have not been written for two days. The error is
// coordination.ErrInvalid for an empty name, and for a directory that its group or others may write
// to, because they could give any lease away.
func Open(dir string) (Store, error) {
	if !lockable {
		return nil, fmt.Errorf("file: %w: this system has no flock", errors.ErrUnsupported)
	}
	if dir == "" {
		return nil, fmt.Errorf("file: %w: the directory is not named", coordination.ErrInvalid)
	}
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("file: %w: the parent must exist", err)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("file: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	if err := private(root, dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("file: %w", err), root.Close())
	}
	s := &store{root, path}
	s.sweep(time.Now())
	return s, nil
}

// inPlace returns an error if the opened directory is not the one that has its name now: processes
// that open it now work in another one.
func (s *store) inPlace() error {
	opened, err := s.root.Stat(".")
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	named, err := os.Stat(s.dir)
	if err == nil && !os.SameFile(opened, named) {
		err = errors.New("there is another one of that name")
	}
	if err != nil {
		return fmt.Errorf("file: directory %s was moved or replaced after this process opened it: %w",
			s.dir, err)
	}
	return nil
}

// private checks the permissions of the opened directory, whatever its name refers to by now, and
// takes the access of others to it.
func private(root *os.Root, dir string) error {
	info, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%w: file: directory %s is writable by others (mode %o); chmod go-w it",
			coordination.ErrInvalid, dir, mode)
	}
	if mode := info.Mode(); mode.Perm()&0o077 != 0 {
		_ = root.Chmod(".", mode&^0o077) // some file systems have no modes
	}
	return nil
}

// Close closes the directory. Close the sessions on the store first.
func (s *store) Close() error { return s.root.Close() }

// Load implements leasestore.Store. It takes no lock: because of the rename it sees either the
// old record or the new one.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return leasestore.Record{}, "", err
	}
	e, err := s.read(name)
	if err != nil {
		return leasestore.Record{}, "", err
	}
	return e.record(), e.version(), nil
}

// Swap implements leasestore.Store. Every error before the rename is ErrRefused.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	lock, err := s.lock(ctx, name)
	if err != nil {
		return "", refused(err)
	}
	defer lock.release()
	present, err := s.read(name)
	if err != nil {
		return "", refused(err)
	}
	if present.version() != old {
		return "", leasestore.ErrConflict
	}
	replacement := present.next(name, next)
	if err := lock.keepToken(replacement.Token); err != nil {
		return "", refused(err)
	}
	if err := s.write(name, replacement); err != nil {
		return "", refused(err)
	}
	if err := s.syncDir(); err != nil {
		return "", err // written, but the write may not survive a crash
	}
	return replacement.version(), nil
}

// KeepsSessions implements leasestore.SessionKeeper.
func (s *store) KeepsSessions() bool { return true }

// Remove implements leasestore.Remover. It removes both files of the name, and with them the
// token. The lock file comes last, so that a process that dies in between leaves no readable record
// behind.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	lock, err := s.lock(ctx, name)
	if err != nil {
		return refused(err)
	}
	defer lock.release()
	present, err := s.read(name)
	if err != nil {
		return refused(err)
	}
	if present.version() != old {
		return leasestore.ErrConflict
	}
	for _, suffix := range []string{recordSuffix, lockSuffix} {
		if err := s.root.Remove(base(name) + suffix); err != nil {
			return fmt.Errorf("file: %w", err)
		}
	}
	return s.syncDir()
}

func refused(err error) error { return fmt.Errorf("%w: %w", leasestore.ErrRefused, err) }

// read returns the record of a name. If there is none, the entry is zero except for the largest
// token.
func (s *store) read(name string) (entry, error) {
	data, err := readBounded(s.root, base(name)+recordSuffix, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		token, err := s.lastToken(name)
		return entry{Token: token}, err
	case err != nil:
		return entry{}, fmt.Errorf("file: lease %q: %w", name, err)
	}
	e, err := decode(data)
	if err == nil && e.Name != name {
		err = fmt.Errorf("record of %q", e.Name)
	}
	if err != nil {
		return entry{}, fmt.Errorf("%w: file: lease %q in %s: %w",
			leasestore.ErrDamaged, name, base(name)+recordSuffix, err)
	}
	return e, nil
}

// write replaces the record of a name.
func (s *store) write(name string, e entry) error {
	data, err := e.encode()
	if err != nil {
		return err
	}
	return s.replace(base(name)+recordSuffix, base(name)+".new", data)
}

// replace replaces a file atomically. The lock of the name is held, so there is one temporary file
// per name; a file that a killed process left behind is overwritten.
func (s *store) replace(path, temporary string, data []byte) error {
	if err := writeSynced(s.root, temporary, data); err != nil {
		return err
	}
	return s.root.Rename(temporary, path)
}

func writeSynced(root *os.Root, path string, data []byte) error {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func (s *store) syncDir() error {
	d, err := s.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package file

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/concord-go/concord/coordination/leasestore"
)

const (
	documentSuffix = ".document"
	// documentFormat begins a line with version, checksum and name; the bytes follow.
	documentFormat = "concord document 1 "
	maxHead        = 4 * leasestore.MaxName
)

// LoadDocument implements leasestore.Documents. Like Load it takes no lock.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	data, err := readBounded(s.root, base(name)+documentSuffix, leasestore.MaxDocument+maxHead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("file: document %q: %w", name, err)
	}
	text, version, err := readDocument(name, data)
	if err != nil {
		return nil, "", fmt.Errorf("%w: file: document %q in %s: %w",
			leasestore.ErrDamaged, name, base(name)+documentSuffix, err)
	}
	return text, version, nil
}

// SwapDocument implements leasestore.Documents. Every error before the rename is ErrRefused.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	lock, err := s.lock(ctx, name)
	if err != nil {
		return "", refused(err)
	}
	defer lock.release()
	_, present, err := s.LoadDocument(ctx, name)
	if err != nil {
		return "", refused(err)
	}
	if present != old {
		return "", leasestore.ErrConflict
	}
	version := rand.Text()
	if err := s.replace(base(name)+documentSuffix, base(name)+documentSuffix+".new",
		append(documentHead(name, version, next), next...)); err != nil {
		return "", refused(err)
	}
	if err := s.syncDir(); err != nil {
		return "", err // written, but the write may not survive a crash
	}
	return leasestore.Version(version), nil
}

func documentHead(name, version string, text []byte) []byte {
	sum := crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(nil, "%s%s %08x %q\n", documentFormat, version, sum, name)
}

// readDocument returns the content after the head, which must be the head of that content.
func readDocument(name string, data []byte) ([]byte, leasestore.Version, error) {
	head, text, ok := bytes.Cut(data, []byte("\n"))
	rest, known := bytes.CutPrefix(head, []byte(documentFormat))
	if !ok || !known {
		return nil, "", errors.New("does not begin like a document of this format")
	}
	version, _, _ := bytes.Cut(rest, []byte(" "))
	switch {
	case len(version) == 0:
		return nil, "", errors.New("no version")
	case len(text) > leasestore.MaxDocument:
		return nil, "", fmt.Errorf("more than %d bytes", leasestore.MaxDocument)
	case !bytes.Equal(documentHead(name, string(version), text), data[:len(head)+1]):
		return nil, "", errors.New("checksum or name differs")
	}
	return text, leasestore.Version(version), nil
}

package memory

import (
	"bytes"
	"context"
	"strconv"

	"github.com/concord-go/concord/coordination/leasestore"
)

// text is a document.
type text struct {
	bytes   []byte
	version leasestore.Version
}

// LoadDocument implements leasestore.Documents.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mu.texts[name]
	return bytes.Clone(t.bytes), t.version, nil
}

// SwapDocument implements leasestore.Documents.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.texts[name].version != old {
		return "", leasestore.ErrConflict
	}
	if s.mu.texts == nil {
		s.mu.texts = map[string]text{}
	}
	s.mu.writes++
	t := text{bytes.Clone(next), leasestore.Version(strconv.FormatUint(s.mu.writes, 10))}
	s.mu.texts[name] = t
	return t.version, nil
}

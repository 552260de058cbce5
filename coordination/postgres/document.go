package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/concord-go/concord/coordination/leasestore"
)

// documentStatements prepares the statements. They bound the length before the server sends
// content.
func (s *store) documentStatements() {
	s.loadDocument = fmt.Sprintf(`SELECT CASE WHEN length(content) > %d THEN NULL ELSE content END, length(content), %s
FROM %s_documents WHERE name = $1`, leasestore.MaxDocument, mark, s.table)
	s.insertDocument = fmt.Sprintf(
		"INSERT INTO %s_documents (name, content) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING %s", s.table, mark)
	s.updateDocument = fmt.Sprintf(`UPDATE %[1]s_documents SET content = $2, version = nextval('%[1]s_version'), written = clock_timestamp()
WHERE name = $1 AND %[2]s = $3 RETURNING %[2]s`, s.table, mark)
}

// LoadDocument implements leasestore.Documents.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	text := escape(name)
	if len(text) > maxName {
		return nil, "", tooLong(name)
	}
	type row struct {
		content []byte
		size    int
		version string
	}
	r, err := ask(ctx, s.pool, name, func(ctx context.Context) (r row, err error) {
		err = s.db.QueryRowContext(ctx, s.loadDocument, text).Scan(&r.content, &r.size, &r.version)
		return r, err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("postgres: document %.80q: %w", name, err)
	case r.size > leasestore.MaxDocument:
		return nil, "", fmt.Errorf(
			"%w: postgres: document %.80q has %d bytes, over the limit of %d",
			leasestore.ErrDamaged, name, r.size, leasestore.MaxDocument)
	}
	return r.content, leasestore.Version(r.version), nil
}

// SwapDocument implements leasestore.Documents.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text := escape(name)
	if len(text) > maxName {
		return "", tooLong(name)
	}
	if next == nil {
		next = []byte{} // a nil slice would be NULL
	}
	query, args := s.insertDocument, []any{text, next}
	if old != "" {
		query, args = s.updateDocument, append(args, string(old))
	}
	version, err := ask(ctx, s.pool, name, func(ctx context.Context) (version string, err error) {
		err = s.db.QueryRowContext(ctx, query, args...).Scan(&version)
		return version, err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", leasestore.ErrConflict
	case err != nil:
		return "", outcome(err)
	}
	return leasestore.Version(version), nil
}

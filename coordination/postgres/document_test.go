//go:build stores

package postgres_test

import (
	"database/sql"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/postgres"
	"github.com/concord-go/concord/testkit/documenttest"
)

func TestDocuments(t *testing.T) {
	db := connect(t)
	documenttest.Run(t, func(t *testing.T) (a, b leasestore.Documents) {
		at := table()
		return open(t, db, at), open(t, db, at)
	})
}

func TestDocuments_Interrupted(t *testing.T) {
	connect(t) // reports what is missing
	dsn := os.Getenv("CONCORD_POSTGRES")
	cfg, err := pgx.ParseConfig(dsn)
	must(t, err)
	tables := map[string]string{} // by test
	documenttest.Interrupted(t, net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))),
		func(t *testing.T, address string) leasestore.Documents {
			host, port, err := net.SplitHostPort(address)
			must(t, err)
			db, err := sql.Open("pgx", dsn+" host="+host+" port="+port)
			must(t, err)
			t.Cleanup(func() { _ = db.Close() })
			if tables[t.Name()] == "" {
				tables[t.Name()] = table()
			}
			return open(t, db, tables[t.Name()])
		})
}

// A document of another program is rejected if it is too large. Versions continue after a deletion.
func TestDocuments_ForeignContent(t *testing.T) {
	db, at := connect(t), table()
	s := open(t, db, at)
	_, err := db.ExecContext(t.Context(), "INSERT INTO "+at+
		"_documents (name, content) VALUES ('x', convert_to(repeat('x', $1), 'UTF8'))",
		leasestore.MaxDocument+1)
	must(t, err)
	if _, _, err := s.LoadDocument(t.Context(), "x"); !errors.Is(err, leasestore.ErrDamaged) ||
		!strings.Contains(err.Error(), `"x" has 131073 bytes`) {
		t.Errorf("too large: %v", err)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE "+at+"_documents SET content = 'hello'")
	must(t, err)
	text, v, err := s.LoadDocument(t.Context(), "x")
	if err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE "+at+"_documents SET content = 'by hand'")
	must(t, err)
	if _, err := s.SwapDocument(t.Context(), "x", v, []byte("next")); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("swap of what was changed by hand: %v", err)
	}
	_, err = db.ExecContext(t.Context(), "DELETE FROM "+at+"_documents")
	must(t, err)
	w, err := s.SwapDocument(t.Context(), "x", "", []byte("next"))
	if err != nil || w == v {
		t.Errorf("version %q again: %v", w, err)
	}
}

// A schema from before documents existed, or a missing right: the call is refused, and the error
// names the table.
func TestDocuments_WithoutTheTable(t *testing.T) {
	db, at := connect(t), table()
	s := open(t, db, at)
	_, err := db.ExecContext(t.Context(), "DROP TABLE "+at+"_documents")
	must(t, err)
	if _, _, err := s.LoadDocument(t.Context(), "x"); err == nil || !strings.Contains(err.Error(),
		at+"_documents") {
		t.Errorf("load: %v", err)
	}
	if _, err := s.SwapDocument(t.Context(), "x", "", nil); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("swap: %v", err)
	}
	must(t, s.Install(t.Context()))
	if _, err := s.SwapDocument(t.Context(), "x", "", nil); err != nil {
		t.Errorf("after Install: %v", err)
	}
}

func TestDocuments_NamesTooLong(t *testing.T) {
	s, err := postgres.New(connect(t), postgres.Config{Table: table()})
	must(t, err)
	long := strings.Repeat("n", 2049)
	if _, _, err := s.LoadDocument(t.Context(), long); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.SwapDocument(t.Context(), long, "", nil); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("swap: %v", err)
	}
}

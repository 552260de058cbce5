//go:build stores

package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/documenttest"
)

func TestDocuments(t *testing.T) {
	client := connect(t, server(t))
	documenttest.Run(t, func(t *testing.T) (a, b leasestore.Documents) {
		at := prefix(t)
		return open(t, client, at), open(t, client, at)
	})
}

func TestDocuments_Interrupted(t *testing.T) {
	at := prefix(t)
	documenttest.Interrupted(t, server(t)[0],
		func(t *testing.T, address string) leasestore.Documents {
			return open(t, connect(t, []string{address}), at+t.Name()+"/")
		})
}

// A document of another program is rejected if it is too large; otherwise it cannot be recognized.
// Versions continue after a deletion.
func TestDocuments_ForeignContent(t *testing.T) {
	client, at := connect(t, server(t)), prefix(t)
	s := open(t, client, at)
	key := at + ",document/a%2Fb"
	_, err := client.Put(t.Context(), key, strings.Repeat("x", leasestore.MaxDocument+1))
	must(t, err)
	if _, _, err := s.LoadDocument(t.Context(), "a/b"); !errors.Is(err, leasestore.ErrDamaged) ||
		!strings.Contains(err.Error(), `"a/b" has 131073 bytes`) {
		t.Errorf("too large: %v", err)
	}
	_, err = client.Put(t.Context(), key, "hello")
	must(t, err)
	text, v, err := s.LoadDocument(t.Context(), "a/b")
	if err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	_, err = client.Delete(t.Context(), key)
	must(t, err)
	if _, err := s.SwapDocument(t.Context(), "a/b", v, []byte("next")); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("swap of what was deleted: %v", err)
	}
	w, err := s.SwapDocument(t.Context(), "a/b", "", []byte("next"))
	if err != nil || w == v {
		t.Errorf("version %q again: %v", w, err)
	}
}

func TestDocuments_NamesTooLong(t *testing.T) {
	s, err := etcd.New(connect(t, server(t)), etcd.Config{Prefix: prefix(t)})
	must(t, err)
	long := strings.Repeat("n", 17<<10)
	if _, _, err := s.LoadDocument(t.Context(), long); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.SwapDocument(t.Context(), long, "", nil); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("swap: %v", err)
	}
}

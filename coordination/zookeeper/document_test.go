//go:build stores

package zookeeper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper"
	"github.com/concord-go/concord/testkit/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Run(t, func(t *testing.T) (a, b leasestore.Documents) {
		path := fresh()
		return open(t, zookeeper.Config{Path: path}), open(t, zookeeper.Config{Path: path})
	})
}

func TestDocuments_Interrupted(t *testing.T) {
	path := fresh()
	documenttest.Interrupted(t, servers(t)[0],
		func(t *testing.T, address string) leasestore.Documents {
			return open(t, zookeeper.Config{Servers: []string{address},
				Path: path + "/" + strings.ReplaceAll(t.Name(), "/", "-")})
		})
}

// TestDocuments_DeletedAndCreatedAgain: the data of the new node have the same version as those of
// the deleted one had.
func TestDocuments_DeletedAndCreatedAgain(t *testing.T) {
	path := fresh()
	s, c := open(t, zookeeper.Config{Path: path}), client(t)
	v, err := s.SwapDocument(t.Context(), "x", "", []byte("one"))
	must(t, err)
	at := path + "/%documents/x"
	_, err = c.Sync(at) // the server of c may lag behind
	must(t, err)
	children, _, err := c.Children(at)
	must(t, err)
	for _, child := range children {
		must(t, c.Delete(at+"/"+child, -1))
	}
	if _, err := s.SwapDocument(t.Context(), "x", v, []byte("two")); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("under a document without its child: %v", err)
	}
	must(t, c.Delete(at, -1))
	w, err := s.SwapDocument(t.Context(), "x", "", []byte("three"))
	must(t, err)
	if _, err := s.SwapDocument(t.Context(), "x", v, []byte("four")); w == v ||
		!errors.Is(err, leasestore.ErrConflict) {
		t.Errorf("under version %q, now %q: %v", v, w, err)
	}
	text, got, err := s.LoadDocument(t.Context(), "x")
	if string(text) != "three" || got != w || err != nil {
		t.Errorf("%q under %q, %v", text, got, err)
	}
}

// Data of another program are no document, and are not overwritten.
func TestDocuments_ForeignContent(t *testing.T) {
	path := fresh()
	s, c := open(t, zookeeper.Config{Path: path}), client(t)
	_, err := s.SwapDocument(t.Context(), "y", "", nil) // creates the nodes above
	must(t, err)
	_, err = c.Create(path+"/%documents/x", []byte("hello"), 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	if _, _, err := s.LoadDocument(t.Context(), "x"); !errors.Is(err, leasestore.ErrDamaged) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.SwapDocument(t.Context(), "x", "", nil); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("swap: %v", err)
	}
	long := strings.Repeat("n", 17<<10)
	if _, err := s.SwapDocument(t.Context(), long, "", nil); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("a long name: %v", err)
	}
}

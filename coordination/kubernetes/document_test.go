//go:build stores

package kubernetes_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	v1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/documenttest"
)

func TestDocuments(t *testing.T) {
	a, b := client(t, config(t)), client(t, config(t))
	documenttest.Run(t, func(t *testing.T) (leasestore.Documents, leasestore.Documents) {
		prefix := fresh()
		return open(t, a, prefix), open(t, b, prefix)
	})
}

func TestDocuments_Interrupted(t *testing.T) {
	at, err := url.Parse(env(t, "CONCORD_KUBERNETES"))
	must(t, err)
	prefix := fresh()
	documenttest.Interrupted(t, at.Host, func(t *testing.T, address string) leasestore.Documents {
		cfg := config(t)
		cfg.Host = "https://" + address
		return open(t, client(t, cfg), prefix+t.Name())
	})
}

func TestDocumentName_IsThatOfNoLease(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "document.a", "concord-document.a", "A", "queue-a",
		strings.Repeat("n", 236), strings.Repeat("n", 237), ""} {
		for _, object := range []string{kubernetes.DocumentName(name),
			kubernetes.ObjectName(name)} {
			if seen[object] != "" || len(object) > 253 {
				t.Errorf("%q for %.20q and %.20q", object, seen[object], name)
			}
			seen[object] = name + " "
		}
	}
	if got := kubernetes.DocumentName("shop.members"); got != "concord-document.shop.members" {
		t.Errorf("got %s", got)
	}
}

// An object that is not a document, or is damaged, is rejected with its name, and not overwritten.
func TestDocuments_ForeignContent(t *testing.T) {
	leases, s := operator(t), open(t, client(t, config(t)), fresh())
	object := kubernetes.DocumentName(s.prefix + "x")
	of := "concord-go.github.io/document-of"
	_, err := leases.Create(t.Context(), &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: object}},
		metav1.CreateOptions{})
	must(t, err)
	damaged := func(what, want string) {
		t.Helper()
		if _, _, err := s.LoadDocument(t.Context(), "x"); !errors.Is(err, leasestore.ErrDamaged) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: load: %v", what, err)
		}
		if _, err := s.SwapDocument(t.Context(), "x", "", []byte("next")); !errors.Is(err,
			leasestore.ErrConflict) {
			t.Errorf("%s: swap: %v", what, err)
		}
	}
	annotate := func(annotations map[string]any) {
		t.Helper()
		body, err := json.Marshal(
			map[string]any{"metadata": map[string]any{"annotations": annotations}})
		must(t, err)
		_, err = leases.Patch(t.Context(), object, types.MergePatchType, body,
			metav1.PatchOptions{})
		must(t, err)
	}
	const document = "concord-go.github.io/document"
	damaged("without annotations", "in Lease "+object+": annotation "+of)
	annotate(map[string]any{of: s.prefix + "y", document: ""})
	damaged("of another name", "annotation "+of)
	annotate(map[string]any{of: s.prefix + "x", document: nil})
	damaged("without content", "no annotation "+document)
	annotate(map[string]any{document: "?"})
	damaged("not in base64", "illegal base64")
	annotate(map[string]any{document: base64.StdEncoding.EncodeToString(
		make([]byte, leasestore.MaxDocument+1))})
	damaged("too large", "131073 bytes, over the limit of 131072")

	annotate(map[string]any{document: base64.StdEncoding.EncodeToString([]byte("hello"))})
	text, v, err := s.LoadDocument(t.Context(), "x")
	if err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	must(t, leases.Delete(t.Context(), object, metav1.DeleteOptions{}))
	if _, err := s.SwapDocument(t.Context(), "x", v, []byte("next")); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("swap of what was deleted: %v", err)
	}
	w, err := s.SwapDocument(t.Context(), "x", "", []byte("next"))
	if err != nil || w == v {
		t.Errorf("version %q again: %v", w, err)
	}
}

func TestDocuments_NamesTooLong(t *testing.T) {
	s := open(t, client(t, config(t)), "")
	for _, name := range []string{strings.Repeat("n", 17<<10), "\xff"} {
		if _, _, err := s.LoadDocument(t.Context(), name); !errors.Is(err, leasestore.ErrRefused) {
			t.Errorf("load of %.10q: %v", name, err)
		}
		if _, err := s.SwapDocument(t.Context(), name, "", nil); !errors.Is(err,
			leasestore.ErrRefused) {
			t.Errorf("swap of %.10q: %v", name, err)
		}
	}
}

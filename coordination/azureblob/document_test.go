//go:build stores

package azureblob_test

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Run(t, func(t *testing.T) (a, b leasestore.Documents) {
		at := fresh()
		return open(t, at), open(t, at)
	})
}

var endpoint = regexp.MustCompile(`BlobEndpoint=http://([^/;]*)`)

func TestDocuments_Interrupted(t *testing.T) {
	name := fresh()
	must(t, open(t, name).Install(t.Context()))
	connection := os.Getenv("CONCORD_AZURE")
	at := endpoint.FindStringSubmatch(connection)
	if at == nil {
		t.Fatal("CONCORD_AZURE has no BlobEndpoint without TLS")
	}
	documenttest.Interrupted(t, at[1], func(t *testing.T, address string) leasestore.Documents {
		h := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(h.CloseIdleConnections)
		c, err := container.NewClientFromConnectionString(
			strings.Replace(connection, at[1], address, 1), name,
			&container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: h}})
		must(t, err)
		s, err := azureblob.New(c, azureblob.Config{Prefix: url.PathEscape(t.Name()) + "/"})
		must(t, err)
		return s
	})
}

// A blob that is too large is no document. Versions continue after a deletion.
func TestDocuments_ForeignContent(t *testing.T) {
	name := fresh()
	s := open(t, name)
	b := connect(t, name).NewBlockBlobClient(s.DocumentBlob("a/b"))
	_, err := b.UploadBuffer(t.Context(), make([]byte, leasestore.MaxDocument+1), nil)
	must(t, err)
	if _, _, err := s.LoadDocument(t.Context(), "a/b"); !errors.Is(err, leasestore.ErrDamaged) {
		t.Errorf("too large: %v", err)
	}
	_, err = b.UploadBuffer(t.Context(), []byte("hello"), nil)
	must(t, err)
	text, v, err := s.LoadDocument(t.Context(), "a/b")
	if err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	_, err = b.Delete(t.Context(), nil)
	must(t, err)
	if _, err := s.SwapDocument(t.Context(), "a/b", v, []byte("next")); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("swap of what was deleted: %v", err)
	}
	w, err := s.SwapDocument(t.Context(), "a/b", "", []byte("next"))
	if err != nil || w == v {
		t.Errorf("version %q again: %v", w, err)
	}
	if _, err := s.SwapDocument(t.Context(), strings.Repeat("n", 17<<10), "",
		nil); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("a long name: %v", err)
	}
}

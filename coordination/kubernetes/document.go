package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/concord-go/concord/coordination/leasestore"
)

// A document is an annotation, in base64, of a Lease object that nobody ever holds, because the
// account has permissions on no other kind. Kubernetes keeps 256 KiB of annotations per object, and
// MaxDocument takes 171 KiB.
const (
	atDocument = domain + "document"
	documentOf = domain + "document-of" // the name
)

// documentName returns the name of the Lease object that keeps a document. No lease has this name:
// ObjectName hashes names that begin with the same prefix.
func documentName(name string) string {
	if object := hashed + "document." + name; len(validation.IsDNS1123Subdomain(object)) == 0 {
		return object
	}
	return hashed + "document-" + hashOf(name)
}

// LoadDocument implements leasestore.Documents.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	if _, err := objectName(name); err != nil {
		return nil, "", err
	}
	l, err := s.leases.Get(ctx, documentName(name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("kubernetes: document %.80q: %w", name, err)
	}
	text, err := document(name, l)
	if err != nil {
		return nil, "", fmt.Errorf("%w: kubernetes: document %.80q in Lease %s: %w",
			leasestore.ErrDamaged, name, l.Name, err)
	}
	return text, leasestore.Version(l.ResourceVersion), nil
}

// document returns the document that an object contains.
func document(name string, l *v1.Lease) ([]byte, error) {
	if of, ours := l.Annotations[documentOf]; !ours || of != name {
		return nil, fmt.Errorf("annotation %s is %.80q", documentOf, of)
	}
	encoded, ours := l.Annotations[atDocument]
	if !ours {
		return nil, fmt.Errorf("no annotation %s", atDocument)
	}
	text, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil:
		return nil, fmt.Errorf("annotation %s: %w", atDocument, err)
	case len(text) > leasestore.MaxDocument:
		return nil, fmt.Errorf("it has %d bytes, over the limit of %d", len(text),
			leasestore.MaxDocument)
	}
	return text, nil
}

// SwapDocument implements leasestore.Documents.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if _, err := objectName(name); err != nil {
		return "", err
	}
	if old != "" {
		if n, err := number(string(old)); err != nil || n == 0 { // 0 would match any version
			return "", leasestore.ErrConflict
		}
	}
	annotations := map[string]string{documentOf: name,
		atDocument: base64.StdEncoding.EncodeToString(next), atWrite: rand.Text()}
	ctx, repeated := counted(ctx)
	written, err := s.writeDocument(ctx, documentName(name), string(old), annotations)
	if err != nil {
		return "", outcome(err, repeated())
	}
	return leasestore.Version(written.ResourceVersion), nil
}

func (s *store) writeDocument(ctx context.Context, object, old string,
	annotations map[string]string) (*v1.Lease, error) {
	if old == "" {
		return s.leases.Create(ctx,
			&v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: object, Annotations: annotations}},
			metav1.CreateOptions{})
	}
	return change(ctx, s.leases, object, map[string]any{"metadata": map[string]any{
		"resourceVersion": old, "annotations": annotations}})
}

package coordination

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Document is one document of a store, in the form that distributeddata.Config.Membership takes.
// Use NewDocument to make one.
type Document struct {
	store leasestore.Documents
	name  string
}

var errNoDocument = fmt.Errorf("%w: NewDocument has not made this document", ErrInvalid)

// NewDocument returns the document of a name in a store. The error is ErrInvalid if the store does
// not implement leasestore.Documents, or if name is not a valid lease name, or begins with
// "concord.queue.": these documents hold the queues of Config.Fair.
func NewDocument(store Store, name string) (*Document, error) {
	d, ok := store.(leasestore.Documents)
	if !ok {
		return nil, fmt.Errorf("%w: store %T keeps no documents", ErrInvalid, store)
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, queue.Documents) {
		return nil, fmt.Errorf("%w: document %.80q: names that begin with %q are those of queues",
			ErrInvalid, name, queue.Documents)
	}
	return &Document{d, name}, nil
}

// Load returns the document and its version, both empty if there is none. The error is
// leasestore.ErrDamaged for content that Swap did not write.
func (d *Document) Load(ctx context.Context) (text []byte, version string, err error) {
	if d == nil || d.store == nil {
		return nil, "", errNoDocument
	}
	text, v, err := d.store.LoadDocument(ctx, d.name)
	return text, string(v), err
}

// Swap writes next if the version is still old. If it is not, swapped is false and err is nil:
// another write came first, perhaps an earlier one of this writer with an unknown outcome.
// leasestore.ErrRefused means that nothing was written. After any other error next may have been
// written, or may still be written later, and the caller reads again before the next Swap.
func (d *Document) Swap(ctx context.Context, old string,
	next []byte) (version string, swapped bool, err error) {
	if d == nil || d.store == nil {
		return "", false, errNoDocument
	}
	if len(next) > leasestore.MaxDocument {
		return "", false, fmt.Errorf("%w: document %.80q would have %d bytes, over the limit of %d",
			leasestore.ErrRefused, d.name, len(next), leasestore.MaxDocument)
	}
	v, err := d.store.SwapDocument(ctx, d.name, leasestore.Version(old), next)
	if errors.Is(err, leasestore.ErrConflict) {
		return "", false, nil
	}
	return string(v), err == nil, err
}

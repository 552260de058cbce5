package coordination

import (
	"context"
	"errors"
	"fmt"
)

// Documents is an optional ability of a Store: it keeps opaque bytes beside the leases, and
// replaces them only if nobody else has. A document and a lease of one name have nothing to do with
// each other. A store copies the bytes that it keeps and those that it returns. The stores of packages
// memory, file, etcd, postgres and kubernetes implement it.
type Documents interface {
	// LoadDocument returns what is kept and its version. Without a document both are empty. The answer is
	// as new as the call: a swap that returned before is seen. It returns ErrDamagedDocument for content
	// that SwapDocument has not written, as far as the store can tell.
	LoadDocument(ctx context.Context, name string) ([]byte, Version, error)
	// SwapDocument writes next if the version is still old, and returns the new version. No version of a
	// name is ever used twice. Callers give at most MaxDocument bytes. ErrConflict: the version is another;
	// if the client of the store repeats requests by itself, the one that is found may be this call's own.
	// ErrRefused: certainly not written. After any other error, as when the connection breaks or ctx ends
	// before the answer, next may have been written, or may be yet: only a later read under another
	// version than old ends that.
	SwapDocument(ctx context.Context, name string, old Version, next []byte) (Version, error)
}

// MaxDocument is how many bytes a document may have: what every store can keep.
const MaxDocument = 128 << 10

// Document is one document of a store, as distributeddata.Config.Membership takes it. Use
// NewDocument.
type Document struct {
	store Documents
	name  string
}

// NewDocument returns the document of a name in a store. The error is ErrInvalid if the store keeps
// no documents, or the name is not one that a lease may have.
func NewDocument(store Store, name string) (*Document, error) {
	d, ok := store.(Documents)
	if !ok {
		return nil, fmt.Errorf("%w: store %T keeps no documents", ErrInvalid, store)
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return &Document{d, name}, nil
}

// Load returns what is kept and its version, both empty if there is nothing. The error is
// ErrDamagedDocument if there is something else than Swap has written.
func (d *Document) Load(ctx context.Context) (text []byte, version string, err error) {
	text, v, err := d.store.LoadDocument(ctx, d.name)
	return text, string(v), err
}

// Swap writes next if the version is still old. Swapped is false, without an error, if it is
// another: read before you conclude that somebody else has written. ErrRefused says that nothing was
// written; after any other error it may have been, or may be yet, and the caller reads again before
// the next Swap.
func (d *Document) Swap(ctx context.Context, old string, next []byte) (version string, swapped bool, err error) {
	if len(next) > MaxDocument {
		return "", false, fmt.Errorf("%w: document %.80q would have %d bytes, over the limit of %d", ErrRefused, d.name, len(next), MaxDocument)
	}
	v, err := d.store.SwapDocument(ctx, d.name, Version(old), next)
	if errors.Is(err, ErrConflict) {
		return "", false, nil
	}
	return string(v), err == nil, err
}

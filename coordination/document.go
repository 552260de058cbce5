package coordination

import (
	"context"
	"errors"
	"fmt"
)

// Documents is an optional ability of a Store: it keeps opaque bytes beside the leases and replaces
// them by compare-and-set. A document and a lease of the same name are unrelated. A store copies
// the bytes that it keeps and the bytes that it returns. The stores of packages memory, file, etcd,
// postgres and kubernetes implement it.
type Documents interface {
	// LoadDocument returns the document and its version; both are empty if there is none. The
	// answer reflects every swap that returned before the call. The error is ErrDamaged for content
	// that SwapDocument did not write, as far as the store can tell.
	LoadDocument(ctx context.Context, name string) ([]byte, Version, error)
	// SwapDocument writes next if the version is still old, and returns the new version. No version
	// of a name is ever used twice. Callers pass at most MaxDocument bytes. ErrConflict means that
	// the version is not old; if the client of the store repeats requests by itself, the version
	// found may be the one that this call wrote. ErrRefused means that next was certainly not
	// written. After any other error, such as a broken connection or an end of ctx before the
	// answer, next may have been written, or may still be written later. Only a later read under a
	// version other than old settles that.
	SwapDocument(ctx context.Context, name string, old Version, next []byte) (Version, error)
}

// MaxDocument is the maximum size of a document in bytes: the most that every store can keep.
const MaxDocument = 128 << 10

// Document is one document of a store, in the form that distributeddata.Config.Membership takes.
// Use NewDocument to make one.
type Document struct {
	store Documents
	name  string
}

// NewDocument returns the document of a name in a store. The error is ErrInvalid if the store does
// not implement Documents, or if name is not a valid lease name.
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

// Load returns the document and its version, both empty if there is none. The error is
// ErrDamaged for content that Swap did not write.
func (d *Document) Load(ctx context.Context) (text []byte, version string, err error) {
	text, v, err := d.store.LoadDocument(ctx, d.name)
	return text, string(v), err
}

// Swap writes next if the version is still old. If it is not, swapped is false and err is nil; read
// the document before concluding that another writer changed it. ErrRefused means that nothing was
// written. After any other error next may have been written, or may still be written later, and the
// caller reads again before the next Swap.
func (d *Document) Swap(ctx context.Context, old string,
	next []byte) (version string, swapped bool, err error) {
	if len(next) > MaxDocument {
		return "", false, fmt.Errorf("%w: document %.80q would have %d bytes, over the limit of %d",
			ErrRefused, d.name, len(next), MaxDocument)
	}
	v, err := d.store.SwapDocument(ctx, d.name, Version(old), next)
	if errors.Is(err, ErrConflict) {
		return "", false, nil
	}
	return string(v), err == nil, err
}

package leasestore

import "context"

// Documents is an optional ability of a Store: it keeps opaque bytes beside the leases and replaces
// them by compare-and-set. A document and a lease of the same name are unrelated. A store copies
// the bytes that it keeps and the bytes that it returns. coordination.Config.Fair keeps its queues
// in documents. All stores of this module implement it.
type Documents interface {
	// LoadDocument returns the document and its version; both are empty if there is none. The
	// answer reflects every swap that returned before the call. The error is ErrDamaged for content
	// that SwapDocument did not write, as far as the store can tell.
	LoadDocument(ctx context.Context, name string) ([]byte, Version, error)
	// SwapDocument writes next if the version is still old, and returns the new version. No version
	// of a name is ever used twice. Callers pass at most MaxDocument bytes. ErrConflict means that
	// the version is not old, and ErrRefused that there was another reason; next was certainly not
	// written. After any other error, such as a broken connection or an end of ctx before the
	// answer, next may have been written, or may still be written later. Only a later read under a
	// version other than old settles that.
	SwapDocument(ctx context.Context, name string, old Version, next []byte) (Version, error)
}

// MaxDocument is the maximum size of a document in bytes: the most that every store can keep.
const MaxDocument = 128 << 10

package causal

import "errors"

// Errors of the encoding. Package crdt exports them, which is why they carry its name.
var (
	ErrMalformed = errors.New("crdt: malformed encoding")
	ErrVersion   = errors.New("crdt: unknown version of the encoding")
	ErrTooLarge  = errors.New("crdt: over the size limit")
)

package causal

import "errors"

// Errors of the encoding. Package crdt exports them, so they carry its prefix.
var (
	ErrMalformed = errors.New("crdt: malformed encoding")
	ErrVersion   = errors.New("crdt: unknown version of the encoding")
	ErrTooLarge  = errors.New("crdt: over the size limit")
)

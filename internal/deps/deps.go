//go:build deps

// Package deps pins requirements ahead of their first use, so that `go mod tidy` keeps the
// versions that were checked to compile and link together.
package deps

import (
	_ "github.com/anishathalye/porcupine" // linearizability of histories
	_ "github.com/dgraph-io/badger/v4"    // durable entries
)

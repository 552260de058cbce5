package wire

import (
	"errors"
	"fmt"
)

// Reasons for which Open rejects an envelope. The typed errors of this package match them with
// errors.Is. The receiver drops and counts a rejected envelope, and never answers it.
var (
	// ErrVersion means an unknown version of the framing. The error is a *VersionError.
	ErrVersion = errors.New("wire: unknown version")
	// ErrCluster means that the sender belongs to another cluster. The error is a *ClusterError.
	ErrCluster = errors.New("wire: foreign cluster")
	// ErrSize means that a payload or name exceeds its bound. The error is a *SizeError.
	ErrSize = errors.New("wire: too large")
	// ErrMalformed means that the envelope, sender, incarnation or manifest is missing.
	ErrMalformed = errors.New("wire: malformed envelope")
)

// VersionError is ErrVersion with the received version.
type VersionError struct{ Version uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("wire: unknown version %d, this node speaks %d", e.Version, Version)
}

// Is matches ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// ClusterError is ErrCluster with the two names.
type ClusterError struct{ Got, Want string }

func (e *ClusterError) Error() string {
	return fmt.Sprintf("wire: foreign cluster %q, this is %q", e.Got, e.Want)
}

// Is matches ErrCluster.
func (e *ClusterError) Is(target error) bool { return target == ErrCluster }

// SizeError is ErrSize with the field that is too large.
type SizeError struct {
	Field       string
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("wire: %s has %d bytes, limit %d", e.Field, e.Size, e.Limit)
}

// Is matches ErrSize.
func (e *SizeError) Is(target error) bool { return target == ErrSize }

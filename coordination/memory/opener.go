package memory

import (
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
)

var _ leaseconfig.Opener = Opener

// Opener opens a memory store for a Provider or a configuration file. It has no settings.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	if err := decode(&struct{}{}); err != nil {
		return nil, err
	}
	return func() (leasestore.Store, error) { return New(), nil }, nil
}

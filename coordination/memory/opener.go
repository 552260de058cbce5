package memory

import "github.com/concord-go/concord/coordination"

var _ coordination.Opener = Opener

// Opener opens a memory store for a Provider or a configuration file. It has no settings.
func Opener(decode func(into any) error) (func() (coordination.Store, error), error) {
	if err := decode(&struct{}{}); err != nil {
		return nil, err
	}
	return func() (coordination.Store, error) { return New(), nil }, nil
}

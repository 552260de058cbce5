// Package opened adapts constructors of stores to leaseconfig.Opener.
package opened

import "github.com/concord-go/concord/coordination/leasestore"

// As adapts the results of a store's constructor to those of an Opener's function: with an error it
// returns a nil Store, also where store is a nil pointer.
func As[S leasestore.Store](store S, err error) (leasestore.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

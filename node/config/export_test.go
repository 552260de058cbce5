package config

import "github.com/concord-go/concord/coordination/leaseconfig"

// Lease returns a section of leases as it was read.
func (f *File) Lease(location string) (leaseconfig.Section, error) {
	return of(f.leases, "leases", location)
}

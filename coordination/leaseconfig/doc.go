// Package leaseconfig opens lease stores and sessions from named sections of a configuration. Code
// asks a Provider for a lease by the name of a section, the location, so an operator can move
// leases to another store without a change of the code.
//
//	provider, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{
//		"billing": {LeaseClass: "file", Store: decode},
//	}, map[string]leaseconfig.Opener{"file": file.Opener})
//	lease, drop, err := provider.Lease("billing", "invoices", "")
//	defer drop(context.Background())
//
// Package node/config reads the sections from a file; docs/configuration.md lists the keys.
package leaseconfig

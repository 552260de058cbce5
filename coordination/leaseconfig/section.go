package leaseconfig

import (
	"cmp"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Section configures the leases of one location, which is the name that code passes to a Provider.
// Package config reads sections from a file.
type Section struct {
	// LeaseClass names the Opener of the store. Required.
	LeaseClass string `yaml:"lease-class"`
	// Config of the sessions. Zero fields take the defaults of DefaultSection.
	Config coordination.Config `yaml:",inline"`
	// Store decodes the settings of the store into a struct with yaml tags; the opener passes a
	// pointer to it. Store may be called several times. nil: there are no settings.
	Store func(into any) error `yaml:"-"`
}

// DefaultSection fills the zero fields of a Section: heartbeat-timeout, which is Config.TTL, with
// 120s; heartbeat-interval, which is Config.RenewInterval, with TTL/10 but at least 5s and never
// more than TTL/3; lease-operation-timeout with 5s, or TTL/10 if that is less. The rest is as in
// Config.
func DefaultSection(s Section) Section {
	c := &s.Config
	c.TTL = cmp.Or(c.TTL, 120*time.Second)
	c.RenewInterval = cmp.Or(c.RenewInterval, min(max(5*time.Second, c.TTL/10), c.TTL/3))
	c.OperationTimeout = cmp.Or(c.OperationTimeout, min(5*time.Second, c.TTL/10))
	return s
}

// Validate reports all problems of the Config, with the defaults of DefaultSection. The Owner that
// Inherit requires may be missing: it comes with the call of Provider.Lease, or is the address of
// the member. If it is still missing when the session is opened, that fails.
func (s Section) Validate() error {
	c := DefaultSection(s).Config
	c.Owner = cmp.Or(c.Owner, "known later")
	return c.Validate()
}

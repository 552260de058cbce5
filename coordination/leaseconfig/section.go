package leaseconfig

import (
	"cmp"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/settings"
)

// Section configures the leases of one location, which is the name that code passes to a Provider.
// Package config reads sections from a file.
type Section struct {
	// LeaseClass names the Opener of the store. Required.
	LeaseClass string `yaml:"lease-class"`
	// Config of the sessions. Zero fields take their defaults.
	Config coordination.Config `yaml:",inline"`
	// Store decodes the settings of the store into a struct with yaml tags; the opener passes a
	// pointer to it. Store may be called several times. nil: there are no settings.
	Store func(into any) error `yaml:"-"`
}

func init() { settings.Checked(Section.validate) }

// validate reports all problems of the Config. The Owner that Inherit requires may be missing: it
// comes with the call of Provider.Lease, or is the address of the member. If it is still missing
// when the session is opened, that fails.
func (s Section) validate() error {
	c := s.Config
	c.Owner = cmp.Or(c.Owner, "known later")
	return settings.Check(c)
}

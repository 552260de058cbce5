package coordination

import "time"

// Section configures the leases of one location, a name that code asks a Provider for. Package config reads
// sections from a file.
type Section struct {
	// LeaseClass names the Opener of the store. Required.
	LeaseClass string `yaml:"lease-class"`
	// Config of the sessions. What is zero gets the defaults of DefaultSection.
	Config Config `yaml:",inline"`
	// Store puts the settings of the store into a struct with yaml tags that the opener points to. It may be called
	// several times. nil: nothing is set.
	Store func(into any) error `yaml:"-"`
}

// DefaultSection fills what a Section leaves open: HeartbeatTimeout 120s, which is Config.TTL;
// heartbeat-interval TTL/10 but at least 5s, which is Config.RenewInterval, and never more than TTL/3;
// lease-operation-timeout 5s, or TTL/10 if that is less. The rest is as in Config.
func DefaultSection(s Section) Section {
	c := &s.Config
	defaultTo(&c.TTL, 120*time.Second)
	defaultTo(&c.RenewInterval, min(max(5*time.Second, c.TTL/10), c.TTL/3))
	defaultTo(&c.OperationTimeout, min(5*time.Second, c.TTL/10))
	return s
}

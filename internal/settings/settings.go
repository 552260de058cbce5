// Package settings reads what a configuration file says of one component.
package settings

// Read decodes settings and checks them. decode is what an Opener or a Configured is given.
func Read[S interface{ Validate() error }](decode func(into any) error) (s S, err error) {
	if err = decode(&s); err == nil {
		err = s.Validate()
	}
	return s, err
}

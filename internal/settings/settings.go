// Package settings reads the settings of one component from a configuration file.
package settings

// Read decodes and validates settings. decode is the argument of an Opener or a Configured
// function.
func Read[S interface{ Validate() error }](decode func(into any) error) (s S, err error) {
	if err = decode(&s); err == nil {
		err = s.Validate()
	}
	return s, err
}

// Package settings checks the configurations of components, and reads those of their parts from a
// configuration file.
package settings

import "reflect"

// checks are those of the types of configurations.
var checks = map[reflect.Type]func(any) error{}

// Checked is called by the package of a configuration when it is initialized. check reports all
// problems at once.
func Checked[C any](check func(C) error) {
	checks[reflect.TypeFor[C]()] = func(c any) error { return check(c.(C)) }
}

// Check reports all problems of a configuration, as the function that starts its component does.
func Check[C any](c C) error { return checks[reflect.TypeFor[C]()](c) }

// CheckOf returns Check for a type of configurations, or nil.
func CheckOf(t reflect.Type) func(c any) error { return checks[t] }

// Read decodes and validates settings. decode is the argument of an Opener or a Configured
// function.
func Read[S interface{ Validate() error }](decode func(into any) error) (s S, err error) {
	if err = decode(&s); err == nil {
		err = s.Validate()
	}
	return s, err
}

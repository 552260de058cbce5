// Package settings checks the configurations of components, and reads those of their parts from a
// configuration file.
package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

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

// Join returns errors.Join of the problems of a configuration, where the text is short even if a
// value or a list is not: it names the first 20 problems, and leaves out the middle of long lines.
func Join(problems ...error) error {
	const most = 20
	short := slices.DeleteFunc(slices.Clone(problems), func(err error) bool { return err == nil })
	if n := len(short) - most; n > 0 {
		short = append(short[:most], fmt.Errorf("and %d more problems", n))
	}
	for i, p := range short {
		if slices.ContainsFunc(strings.Split(p.Error(), "\n"), isLong) {
			short[i] = shortened{p}
		}
	}
	return errors.Join(short...)
}

const lineEnds = 400 // bytes that are kept at each end of a long line

func isLong(line string) bool { return len(line) > 2*lineEnds }

type shortened struct{ error }

func (s shortened) Unwrap() error { return s.error }

func (s shortened) Error() string {
	lines := strings.Split(s.error.Error(), "\n")
	for i, l := range lines {
		if isLong(l) {
			lines[i] = fmt.Sprintf("%s … %d bytes left out … %s",
				strings.ToValidUTF8(l[:lineEnds], ""), len(l)-2*lineEnds,
				strings.ToValidUTF8(l[len(l)-lineEnds:], ""))
		}
	}
	return strings.Join(lines, "\n")
}

package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// classed reads a section that has a class, and returns the result of the opener of that class.
func classed[T any, O ~func(func(any) error) (func() (T, error), error)](r *reader, s section,
	kinds map[string]O) func() (T, error) {
	if !r.is(s.node, s.key, yaml.MappingNode) {
		return nil
	}
	rest := section{&yaml.Node{Kind: yaml.MappingNode, Line: s.node.Line, Column: s.node.Column},
		s.key}
	class, at := "", s.node
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		k, v := s.node.Content[i], s.node.Content[i+1]
		if k.Value != "class" {
			rest.node.Content = append(rest.node.Content, k, v)
			continue
		}
		if at != s.node {
			r.wrong(k, join(s.key, "class"), "is set twice, first in line %d", at.Line)
			return nil
		}
		at = k
		r.into(v, join(s.key, "class"), reflect.ValueOf(&class).Elem())
	}
	open, _ := opened(r, rest, class, at, join(s.key, "class"), kinds)
	return open
}

// opened calls the opener of a class and records the problems it reports. The returned decode
// decodes the section again.
func opened[T any, O ~func(func(any) error) (func() (T, error), error)](r *reader, s section,
	class string, at *yaml.Node, key string, kinds map[string]O) (open func() (T, error),
	decode func(any) error) {
	opener := kinds[class]
	if opener == nil {
		r.noClass(class, at, key, slices.Sorted(maps.Keys(kinds)))
		return nil, nil
	}
	decode = r.decoder(s)
	asked, told := reflect.TypeFor[struct{}](), false
	open, err := opener(func(into any) error {
		asked = reflect.TypeOf(into)
		err := decode(into)
		var found *problems
		if errors.As(err, &found) && !told {
			r.problems, told = append(r.problems, found.all...), true
		}
		return err
	})
	switch {
	case told:
		return nil, nil
	case err != nil:
		r.validated(err, s, asked, nil)
	case open == nil:
		r.wrong(at, key, "the opener of %q returned no function", class)
	}
	return open, decode
}

func (r *reader) noClass(class string, at *yaml.Node, key string, known []string) {
	if !r.sound(key) {
		return
	}
	switch near := nearest(class, known); {
	case class == "":
		r.wrong(at, key, "must be set to one of %q", known)
	case near != "":
		r.wrong(at, key, "%.80q is not known, did you mean %s?", class, near)
	default:
		r.wrong(at, key, "%.80q is none of %q", class, known)
	}
}

// decoder returns a function that decodes a section. The function may be called repeatedly.
func (r *reader) decoder(s section) func(into any) error {
	told := maps.Clone(r.told)
	return func(into any) error {
		v := reflect.ValueOf(into)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return fmt.Errorf("%w: settings of %s are decoded into a pointer, not %T",
				ErrInvalid, s.key, into)
		}
		own := &reader{name: r.name, told: maps.Clone(told)}
		if s.node != nil {
			own.into(s.node, s.key, v.Elem())
		}
		return own.failure()
	}
}

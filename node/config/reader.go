package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reader decodes nodes of a file into Go values and collects problems.
type reader struct {
	name     string // name of the file
	lookup   func(string) (string, bool)
	problems []*keyError
	told     map[*yaml.Node]bool // nodes whose problem has been reported
}

func newReader(name string) *reader { return &reader{name: name, told: map[*yaml.Node]bool{}} }

func (r *reader) wrong(at *yaml.Node, key, format string, args ...any) {
	p := &keyError{key: key, text: fmt.Sprintf(format, args...)}
	if at != nil {
		p.line = at.Line
	}
	r.problems = append(r.problems, p)
}

// section is a part of the file that is decoded later: by an opener, or once its name is known. The
// zero section is one that the file does not have.
type section struct {
	node *yaml.Node
	key  string
}

var (
	sectionType  = reflect.TypeFor[section]()
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

// into decodes a node into v, which must be settable. An empty or null node leaves v unchanged.
func (r *reader) into(n *yaml.Node, key string, v reflect.Value) {
	if n == nil {
		return
	}
	t, null := v.Type(), n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
	switch {
	case r.told[n]:
	case t == sectionType && null:
		v.Set(reflect.ValueOf(section{&yaml.Node{Kind: yaml.MappingNode, Line: n.Line}, key}))
	case t == sectionType:
		v.Set(reflect.ValueOf(section{n, key}))
	case null:
	case t == durationType || reflect.PointerTo(t).Implements(textType):
		r.scalar(n, key, v)
	case t.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		r.into(n, key, v.Elem())
	case t.Kind() == reflect.Struct:
		r.structure(n, key, v)
	case t.Kind() == reflect.Map:
		r.mapping(n, key, v)
	case t.Kind() == reflect.Slice:
		r.list(n, key, v)
	default:
		r.scalar(n, key, v)
	}
}

// fields returns the settable fields of a struct by key, including those of inline structs.
func fields(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch key, inline := tag(f); {
		case inline:
			maps.Copy(out, fields(v.Field(i)))
		case key != "":
			out[key] = v.Field(i)
		}
	}
	return out
}

// tag returns the key of a field, or "" if a file cannot set the field.
func tag(f reflect.StructField) (key string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" || !f.IsExported() && !f.Anonymous {
		return "", false
	}
	return name, options == "inline"
}

func (r *reader) structure(n *yaml.Node, key string, v reflect.Value) {
	if !r.is(n, key, yaml.MappingNode) {
		return
	}
	places := fields(v)
	for k, value := range r.entries(n, key) {
		if place, ok := places[k.Value]; ok {
			r.into(value, join(key, k.Value), place)
			continue
		}
		r.wrong(k, join(key, k.Value), "unknown key%s", r.hint(k.Value, places))
	}
}

// hint suggests the nearest key, or lists all keys if there are few.
func (r *reader) hint(key string, places map[string]reflect.Value) string {
	known := slices.Sorted(maps.Keys(places))
	switch near := nearest(key, known); {
	case near != "":
		return fmt.Sprintf(", did you mean %s?", near)
	case len(known) == 0:
		return ": nothing can be set here"
	}
	return ", must be one of " + strings.Join(known, ", ")
}

func (r *reader) mapping(n *yaml.Node, key string, v reflect.Value) {
	if !r.is(n, key, yaml.MappingNode) {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for k, value := range r.entries(n, key) {
		one := reflect.New(v.Type().Elem()).Elem()
		r.into(value, join(key, k.Value), one)
		v.SetMapIndex(reflect.ValueOf(k.Value).Convert(v.Type().Key()), one)
	}
}

func (r *reader) list(n *yaml.Node, key string, v reflect.Value) {
	if !r.is(n, key, yaml.SequenceNode) {
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		r.into(item, fmt.Sprintf("%s[%d]", key, i), list.Index(i))
	}
	v.Set(list)
}

func (r *reader) scalar(n *yaml.Node, key string, v reflect.Value) {
	if !r.is(n, key, yaml.ScalarNode) {
		return
	}
	err := n.Decode(v.Addr().Interface())
	// else 1.5 becomes 1
	whole := !v.CanInt() || v.Type() == durationType || n.ShortTag() == "!!int"
	if err == nil && whole {
		return
	}
	if mismatch := (*yaml.TypeError)(nil); err != nil && !errors.As(err, &mismatch) {
		r.wrong(n, key, "%s", plain(err)) // from UnmarshalText
	} else {
		r.wrong(n, key, "%.80q is %s", n.Value, wanted(v.Type()))
	}
	r.told[n] = true
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "neither true nor false"
	case reflect.Float64:
		return "not a number"
	case reflect.String:
		return "not text"
	}
	if t == durationType {
		return "not a duration, such as 500ms, 30s or 2m"
	}
	return "not a whole number in range"
}

var kinds = map[yaml.Kind]string{
	yaml.MappingNode: "keys with values", yaml.SequenceNode: "a list", yaml.ScalarNode: "one value",
}

// is reports whether a node is of a kind, and records a problem if not. The problem of a nil node
// has already been reported.
func (r *reader) is(n *yaml.Node, key string, want yaml.Kind) bool {
	if n == nil {
		return false
	}
	if n.Kind != want {
		r.wrong(n, key, "must be %s, is %s", kinds[want], kinds[n.Kind])
		r.told[n] = true
	}
	return n.Kind == want
}

// entries yields the keys of a mapping with their values, and reports duplicate keys.
func (r *reader) entries(n *yaml.Node, key string) func(yield func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if first, twice := seen[k.Value]; twice {
				r.wrong(k, join(key, k.Value), "is set twice, first in line %d", first)
				continue
			}
			seen[k.Value] = k.Line
			if !yield(k, n.Content[i+1]) {
				return
			}
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

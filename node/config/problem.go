package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/concord-go/concord/node"
)

// ErrInvalid is matched by every error of Read and Load about the contents of the file.
var ErrInvalid = errors.New("config: invalid")

// keyError is one problem of a file.
type keyError struct {
	line int    // counted from 1; 0 means the file as a whole
	key  string // its path, such as "leases.shop.heartbeat-timeout"; empty for the file as a whole
	text string // names keys as the file does
}

// Error returns "line 3: leases.shop.heartbeat-timeout: …".
func (p *keyError) Error() string {
	text := p.text
	if p.key != "" {
		text = p.key + ": " + text
	}
	if p.line > 0 {
		text = fmt.Sprintf("line %d: %s", p.line, text)
	}
	return text
}

// Is reports whether target is ErrInvalid or node.ErrInvalid, which node.ExitCode recognizes.
func (p *keyError) Is(target error) bool {
	return target == ErrInvalid || target == node.ErrInvalid
}

// problems are all problems of a file, ordered by line.
type problems struct {
	name string // name of the file
	all  []*keyError
}

func (p *problems) Error() string {
	var b strings.Builder
	if n := len(p.all); n == 1 {
		fmt.Fprintf(&b, "%v: %s: %v", ErrInvalid, p.name, p.all[0])
	} else {
		fmt.Fprintf(&b, "%v: %s: %d problems", ErrInvalid, p.name, n)
		for _, one := range p.all {
			fmt.Fprintf(&b, "\n\t%v", one)
		}
	}
	return b.String()
}

func (p *problems) Unwrap() (errs []error) {
	for _, one := range p.all {
		errs = append(errs, one)
	}
	return errs
}

// failure returns the problems as an error, without duplicates, or nil if there are none.
func (r *reader) failure() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b *keyError) int { return a.line - b.line })
	all := slices.CompactFunc(r.problems, func(a, b *keyError) bool { return *a == *b })
	return &problems{r.name, all}
}

// validated converts the errors that a Validate method of a section reports about fields of type t
// into problems of the corresponding keys. It omits errors about keys that already have a problem.
func (r *reader) validated(err error, s section, t reflect.Type, more map[string]string) {
	if r.told[s.node] {
		return
	}
	keys := names(t)
	maps.Copy(keys, more)
	before := &reader{problems: slices.Clip(r.problems)}
	for _, one := range split(err) {
		text, named := byKeys(plain(one), keys)
		if at, path, ok := before.place(s, named); ok {
			r.wrong(at, path, "%s", text)
		}
	}
}

// place returns the position of the first of the named keys that the section has, or else the
// position of the section. ok is false if one of these keys already has a problem.
func (r *reader) place(s section, named []string) (at *yaml.Node, path string, ok bool) {
	at, path = s.node, s.key
	for _, key := range named {
		k, below := find(s.node, key)
		if k == nil {
			continue
		}
		if !r.sound(join(s.key, below)) {
			return nil, "", false
		}
		if path == s.key {
			at, path = k, join(s.key, below)
		}
	}
	return at, path, true
}

// sound reports whether neither a key nor any key below it has a problem.
func (r *reader) sound(key string) bool {
	return !slices.ContainsFunc(r.problems, func(p *keyError) bool {
		rest, ok := strings.CutPrefix(p.key, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// split returns the errors joined by errors.Join.
func split(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var texts []string
	var parts []error
	for _, part := range joined.Unwrap() {
		texts = append(texts, part.Error())
		parts = append(parts, split(part)...)
	}
	if strings.Join(texts, "\n") != err.Error() {
		return []error{err}
	}
	return parts
}

// sentinel matches the prefixes of errors of this module: "node: invalid configuration: ", "file:
// coordination: invalid argument: ".
var sentinel = regexp.MustCompile(`\b([a-z]+: )?[a-z]+: invalid [a-z]+: `)

func plain(err error) string { return sentinel.ReplaceAllString(err.Error(), "") }

// word matches a quoted text, which is kept, or a word that may be the name of a field.
var word = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|\\b[A-Z][A-Za-z]*\\b")

// byKeys replaces the names of fields with the corresponding keys, and returns those keys in order.
func byKeys(text string, keys map[string]string) (out string, named []string) {
	out = word.ReplaceAllStringFunc(text, func(w string) string {
		key, ok := keys[w]
		if !ok {
			return w
		}
		named = append(named, key)
		return key
	})
	return out, named
}

// names returns the keys of the fields of a struct, including nested structs, by field name.
func names(t reflect.Type) map[string]string {
	out := map[string]string{}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return out
	}
	for f := range t.Fields() {
		key, inline := tag(f)
		if key != "" {
			out[f.Name] = key
		}
		if inline || key != "" {
			for name, key := range names(f.Type) {
				if _, taken := out[name]; !taken {
					out[name] = key
				}
			}
		}
	}
	return out
}

// find returns the first entry of a key in a mapping or in its nested mappings, and its path.
func find(n *yaml.Node, key string) (k *yaml.Node, path string) {
	if key == "" || n == nil || n.Kind != yaml.MappingNode {
		return nil, ""
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], key
		}
	}
	for i := 1; i < len(n.Content); i += 2 {
		if k, below := find(n.Content[i], key); k != nil {
			return k, join(n.Content[i-1].Value, below)
		}
	}
	return nil, ""
}

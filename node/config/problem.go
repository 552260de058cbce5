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

// ErrInvalid is matched by every error of Read and Load that is about what the file says.
var ErrInvalid = errors.New("config: invalid")

// KeyError is one thing that is wrong with a file. errors.As finds the first one.
type KeyError struct {
	// Line is where, counted from 1; 0 if the file as a whole is meant.
	Line int
	// Key is the path of the key, as "leases.shop.heartbeat-timeout"; empty for the file as a whole.
	Key string
	// Text says what is wrong. It names keys as the file does.
	Text string
}

// Error returns "line 3: leases.shop.heartbeat-timeout: …".
func (p *KeyError) Error() string {
	text := p.Text
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// Is makes a problem match ErrInvalid, and node.ErrInvalid, which node.ExitCode knows.
func (p *KeyError) Is(target error) bool { return target == ErrInvalid || target == node.ErrInvalid }

// problems are all that are wrong with a file, in order of lines.
type problems struct {
	name string // of the file
	all  []*KeyError
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

// failure returns the problems as an error, each once; nil if there is none.
func (r *reader) failure() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b *KeyError) int { return a.Line - b.Line })
	all := slices.CompactFunc(r.problems, func(a, b *KeyError) bool { return *a == *b })
	return &problems{r.name, all}
}

// validated turns what a Validate method of a section says of fields of type t into problems of its keys. What rests on a
// value that is none is left out.
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

// place returns the first of some keys that a section has, or else the section. It is not ok if one of them has a problem.
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

// sound reports whether a key, and those below it, have no problem.
func (r *reader) sound(key string) bool {
	return !slices.ContainsFunc(r.problems, func(p *KeyError) bool {
		rest, ok := strings.CutPrefix(p.Key, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// split takes errors.Join apart.
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

// sentinel is how errors of this module begin: "node: invalid configuration: ", "file: coordination: invalid argument: ".
var sentinel = regexp.MustCompile(`\b([a-z]+: )?[a-z]+: invalid [a-z]+: `)

func plain(err error) string { return sentinel.ReplaceAllString(err.Error(), "") }

// word is a text in quotes, which stays as it is, or a word that may be the name of a field.
var word = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|\\b[A-Z][A-Za-z]*\\b")

// byKeys replaces the names of fields by those of keys, and returns these in order.
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

// names are the keys of the fields of a struct and of the structs in it.
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

// find returns the first entry of a key in a mapping or those in it, and its path.
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

package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 16
	maxValue = 64 << 10 // bytes of a value with its variables expanded
)

// variable matches $$, ${NAME}, ${NAME:-default}, or a $ that begins none of these.
var variable = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}|\$`)

// prepare reports YAML features that are not supported, and replaces variables in values.
func (r *reader) prepare(n *yaml.Node, key string, depth int) {
	switch {
	case depth > maxDepth:
		r.wrong(n, key, "is nested more than %d deep", maxDepth)
		n.Content = nil
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.wrong(n, key, "anchors and aliases are not supported")
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line}
	case n.Style&yaml.TaggedStyle != 0:
		r.wrong(n, key, "tags such as %s are not supported", n.Tag)
		r.told[n] = true
	case n.Kind == yaml.ScalarNode:
		r.expand(n, key)
	case n.Kind == yaml.MappingNode:
		r.prepareKeys(n, key, depth)
	default:
		for _, item := range n.Content {
			r.prepare(item, key, depth+1)
		}
	}
}

func (r *reader) prepareKeys(n *yaml.Node, key string, depth int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 ||
			k.Value == "" || k.Tag == "!!merge" {
			r.wrong(k, key, "has a key that is not text")
			k.Kind, k.Value, k.Anchor, k.Alias, k.Content = yaml.ScalarNode, "", "", nil, nil
			r.told[n] = true
			continue
		}
		r.prepare(n.Content[i+1], join(key, k.Value), depth+1)
	}
}

// expand replaces the variables of a value. The result is read as if it had been written in the
// file, but is always a single value: the contents of a variable never become a key or a list.
func (r *reader) expand(n *yaml.Node, key string) {
	if !strings.Contains(n.Value, "$") {
		return
	}
	n.Value = variable.ReplaceAllStringFunc(n.Value, func(found string) string {
		parts := variable.FindStringSubmatch(found)
		name := parts[1]
		switch found {
		case "$$":
			return "$"
		case "$":
			r.wrong(n, key, "has a $ that begins no ${NAME}; write $$ for a $")
		default:
			if value, ok := r.lookup(name); ok && value != "" {
				return value
			}
			if parts[2] == "" {
				r.wrong(n, key, "variable %s is not set; ${%s:-…} would have a default", name, name)
			}
			return parts[3]
		}
		r.told[n] = true
		return ""
	})
	if len(n.Value) > maxValue {
		r.wrong(n, key, "has %d bytes with its variables, at most %d", len(n.Value), maxValue)
		r.told[n] = true
	}
	if n.Style == 0 { // unquoted: the value may have become a number
		n.Tag = ""
	}
}

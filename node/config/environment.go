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

// variable matches the inside of ${NAME} and of ${NAME:-default}.
var variable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(:-(?s:(.*)))?$`)

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
	var out strings.Builder
	for rest := n.Value; rest != ""; {
		text, after, found := strings.Cut(rest, "$")
		out.WriteString(text)
		if rest = after; found {
			var value string
			if value, rest = r.variable(n, key, after); out.Len()+len(value) <= maxValue {
				out.WriteString(value)
				continue
			}
		}
		if out.Len() > maxValue || found {
			r.wrong(n, key, "has more than %d bytes with its variables", maxValue)
			r.told[n] = true
			break
		}
	}
	n.Value = out.String()
	if n.Style == 0 { // unquoted: the value may have become a number
		n.Tag = ""
	}
}

// variable returns what replaces a $, and the text after it. When no } follows, it does not look
// for one again.
func (r *reader) variable(n *yaml.Node, key, text string) (value, rest string) {
	if rest, ok := strings.CutPrefix(text, "$"); ok {
		return "$", rest
	}
	inside, after, closed := "", "", false
	if braced, ok := strings.CutPrefix(text, "{"); ok {
		inside, after, closed = strings.Cut(braced, "}")
	}
	parts := variable.FindStringSubmatch(inside)
	if !closed || parts == nil {
		r.wrong(n, key, "has a $ that begins no ${NAME}; write $$ for a $")
		r.told[n] = true
		return "", ""
	}
	name := parts[1]
	if value, ok := r.lookup(name); ok && value != "" {
		return value, after
	}
	if parts[2] == "" {
		r.wrong(n, key, "variable %.255s is not set; ${%.255s:-…} would have a default", name, name)
		r.told[n] = true
	}
	return parts[3], after
}

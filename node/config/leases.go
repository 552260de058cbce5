package config

import (
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/internal/settings"
)

// defaults is the name of the section of leases whose keys the other sections inherit.
const defaults = "defaults"

// leases reads all sections of leases into f, and returns functions that open their stores.
func (r *reader) leases(all map[string]section, f *File,
	kinds Kinds) map[string]func() (coordination.Store, error) {
	stores := map[string]func() (coordination.Store, error){}
	base := all[defaults]
	if base.node != nil && r.is(base.node, base.key, yaml.MappingNode) {
		node := finite(base.node)
		r.into(node, base.key, reflect.ValueOf(&leaseShape{}).Elem())
		for i := 1; i < len(node.Content); i += 2 {
			r.told[node.Content[i]] = r.told[node.Content[i]] ||
				!r.sound(join(base.key, node.Content[i-1].Value))
		}
	}
	for _, location := range slices.Sorted(maps.Keys(all)) {
		if location != defaults {
			f.leases[location], stores[location] = r.lease(location, all[location], base, kinds)
		}
	}
	return stores
}

func (r *reader) lease(location string, own, base section,
	kinds Kinds) (leaseconfig.Section, func() (coordination.Store, error)) {
	key := join("leases", location)
	if !r.is(own.node, key, yaml.MappingNode) {
		return leaseconfig.Section{}, nil
	}
	at := section{finite(over(own.node, base.node)), key}
	var c leaseShape
	r.into(at.node, key, reflect.ValueOf(&c).Elem())
	k, _ := find(at.node, "lease-class")
	if k == nil {
		k = at.node
	}
	if c.Store.node == nil {
		c.Store = section{&yaml.Node{Kind: yaml.MappingNode, Line: k.Line}, join(key, "store")}
	}
	open, decode := opened(r, c.Store, c.LeaseClass, k, join(key, "lease-class"), kinds.Leases)
	s := c.Section
	s.Store = decode
	r.validated(settings.Check(s), at, reflect.TypeFor[leaseShape](), nil)
	return s, open
}

// over returns a mapping with the keys of own, and those of base that own lacks.
func over(own, base *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Line: own.Line, Content: slices.Clone(own.Content)}
	has := map[string]bool{}
	for i := 0; i < len(own.Content); i += 2 {
		has[own.Content[i].Value] = true
	}
	if base == nil || base.Kind != yaml.MappingNode {
		return out
	}
	for i := 0; i+1 < len(base.Content); i += 2 {
		if k := base.Content[i]; !has[k.Value] && known(k.Value) { // unknown ones were reported
			has[k.Value] = true
			out.Content = append(out.Content, k, base.Content[i+1])
		}
	}
	return out
}

func known(key string) bool {
	_, ok := fields(reflect.ValueOf(&leaseShape{}).Elem())[key]
	return ok
}

// finite replaces heartbeat-timeout: infinite with forever: true.
func finite(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = slices.Clone(n.Content)
	for i := 0; i+1 < len(out.Content); i += 2 {
		k, v := out.Content[i], out.Content[i+1]
		if k.Value == "heartbeat-timeout" && v.Kind == yaml.ScalarNode && v.Value == "infinite" {
			out.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Value: "forever", Line: k.Line}
			out.Content[i+1] = &yaml.Node{Kind: yaml.ScalarNode, Value: "true", Line: v.Line}
		}
	}
	return &out
}

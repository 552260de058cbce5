package config

import (
	"maps"
	"reflect"
	"slices"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// shape is the structure of the file.
type shape struct {
	Node        section            `yaml:"node"`
	Leases      map[string]section `yaml:"leases"`
	Replicators map[string]section `yaml:"replicators"`
	Singletons  map[string]section `yaml:"singletons"`
	Sharding    map[string]section `yaml:"sharding"`
}

type nodeShape struct {
	node.RunConfig `yaml:",inline"`
	// Provider has a class and the settings of that class.
	Provider section `yaml:"provider"`
	// Lease names the section of leases that supplies the store and the settings of the member's
	// session.
	Lease string `yaml:"lease"`
}

type leaseShape struct {
	leaseconfig.Section `yaml:",inline"`
	Store               section `yaml:"store"`
}

type replicatorShape struct {
	distributeddata.Config `yaml:",inline"`
	Store                  section `yaml:"store"`
}

// file converts the sections into configurations. Each is checked by the rules of its own package.
func (r *reader) file(s shape, kinds Kinds) *File {
	f := &File{
		kinds:       kinds,
		leases:      map[string]leaseconfig.Section{},
		replicators: map[string]Replicator{},
		singletons:  map[string]singleton.Config{},
		sharding:    map[string]sharding.Config{},
	}
	stores := r.leases(s.Leases, f, kinds)
	for _, name := range slices.Sorted(maps.Keys(s.Replicators)) {
		f.replicators[name] = r.replicator(name, s.Replicators[name], kinds)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Singletons)) {
		var c singleton.Config
		named(r, "singletons", name, s.Singletons[name], &c, &c.Name, func() error {
			return settings.Check(c)
		})
		f.singletons[name] = c
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sharding)) {
		var c sharding.Config
		named(r, "sharding", name, s.Sharding[name], &c, &c.Type, func() error {
			return settings.Check(c)
		})
		f.sharding[name] = c
	}
	if s.Node.node != nil {
		f.Node = r.member(s, f, stores, kinds)
	}
	return f
}

// named reads a section whose key is its name, so it has no separate key for the name.
func named[C any](r *reader, group, name string, s section, c *C, field *string,
	validate func() error) {
	s.key = join(group, name)
	r.into(s.node, s.key, reflect.ValueOf(c).Elem())
	r.nameless(s, field)
	*field = name
	r.validated(validate(), s, reflect.TypeFor[C](), nil)
}

// nameless reports a problem if a section sets the name that its own key already gives.
func (r *reader) nameless(s section, field *string) {
	if *field == "" {
		return
	}
	for _, key := range []string{"name", "type"} {
		if k, path := find(s.node, key); path == key {
			r.wrong(k, join(s.key, key), "must not be set: the key of the section is the %s", key)
		}
	}
}

func (r *reader) replicator(name string, s section, kinds Kinds) Replicator {
	var c replicatorShape
	s.key = join("replicators", name)
	r.into(s.node, s.key, reflect.ValueOf(&c).Elem())
	r.nameless(s, &c.Name)
	c.Name = name
	var out Replicator
	if c.Store.node != nil {
		out.OpenStore = classed(r, c.Store, kinds.Disks)
		c.Config.Store = unopened{}
	}
	r.validated(settings.Check(c.Config), s, reflect.TypeFor[replicatorShape](), nil)
	c.Config.Store = nil
	out.Config = c.Config
	return out
}

// unopened takes the place of a store while its section is checked.
type unopened struct{ store.Store }

// member returns the configuration for node.Run.
func (r *reader) member(s shape, f *File, stores map[string]func() (coordination.Store, error),
	kinds Kinds) node.RunConfig {
	var is nodeShape
	r.into(s.Node.node, s.Node.key, reflect.ValueOf(&is).Elem())
	c := is.RunConfig
	if is.Provider.node != nil {
		c.Provider = classed(r, is.Provider, kinds.Providers)
		if c.Provider == nil { // already reported
			c.Provider = func() (cluster.ClusterProvider, error) { return nil, ErrInvalid }
		}
	}
	if is.Lease != "" {
		c.Store = r.storeOf(is.Lease, s, stores)
	} else if len(s.Singletons)+len(s.Sharding) > 0 {
		r.wrong(s.Node.node, "node.lease",
			"must name a section of leases: singletons and sharding need one")
	}
	r.validated(settings.Check(c), s.Node, reflect.TypeFor[nodeShape](),
		map[string]string{"Store": "lease"})
	c.Session = f.leases[is.Lease].Config
	return c
}

// storeOf returns a function that opens the store of the member's session. It is never nil: if the
// store is missing, that has been reported.
func (r *reader) storeOf(location string, s shape,
	stores map[string]func() (coordination.Store, error)) func() (coordination.Store, error) {
	if _, ok := s.Leases[location]; !ok || location == defaults {
		at, _ := find(s.Node.node, "lease")
		known := slices.Sorted(maps.Keys(stores))
		r.wrong(at, "node.lease", "no %q in section leases, only %q", location, known)
	}
	if open := stores[location]; open != nil {
		return open
	}
	return func() (coordination.Store, error) { return nil, ErrInvalid }
}

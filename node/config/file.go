package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"github.com/asynkron/protoactor-go/cluster"
	"go.yaml.in/yaml/v3"

	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// Kinds are the implementations that the program offers for the classes that a file names. The
// functions must only decode and check: Read calls them in the goroutine of its caller.
type Kinds struct {
	// Providers are the cluster providers, for node.provider.class.
	Providers map[string]Provider
	// Leases are the openers of lease stores, for lease-class.
	Leases map[string]leaseconfig.Opener
	// Disks are the openers of durable stores, for the class of a replicator's store.
	Disks map[string]Disk
}

// Provider decodes settings into a struct with yaml tags, checks them, and returns a function for
// node.RunConfig.Provider. Each provider package has one.
type Provider func(decode func(into any) error) (func() (cluster.ClusterProvider, error), error)

// Disk decodes settings into a struct with yaml tags, checks them, and returns a function that
// opens a durable store. The packages badger and bbolt each have one.
type Disk func(decode func(into any) error) (func() (store.Store, error), error)

// File is the content of a file, complete and checked. It is immutable.
type File struct {
	// Node is the configuration for node.Run. The program may set fields that a file cannot, such
	// as Logger and Health. Node is the zero value if the file has no section node.
	Node node.RunConfig

	kinds       Kinds
	leases      map[string]leaseconfig.Section
	replicators map[string]Replicator
	singletons  map[string]singleton.Config
	sharding    map[string]sharding.Config
}

// Replicator is a section of replicators.
type Replicator struct {
	// Config is complete except for Store and Membership.
	Config distributeddata.Config
	// OpenStore opens the store of durable keys. The program assigns the store to Config.Store, and
	// closes it after node.Run has returned. OpenStore is nil if the section has no store.
	OpenStore func() (store.Store, error)
}

// Load reads the named file, with the environment of the process.
func Load(name string, kinds Kinds) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	return read(f, name, os.LookupEnv, kinds)
}

// Read reads a file, and looks up variables with lookup; see os.LookupEnv. If lookup is nil, no
// variable is set. An error that matches ErrInvalid lists all problems, with their lines and keys.
func Read(from io.Reader, lookup func(string) (string, bool), kinds Kinds) (*File, error) {
	return read(from, "concord.yaml", lookup, kinds)
}

func read(from io.Reader, name string, lookup func(string) (string, bool),
	kinds Kinds) (*File, error) {
	if from == nil {
		return nil, fmt.Errorf("%w: %s: the reader is nil", ErrInvalid, name)
	}
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("config: %s: %w", name, err)
	}
	r := newReader(name)
	r.lookup = lookup
	root := r.parse(data)
	var s shape
	if root != nil {
		r.prepare(root, "", 0)
		r.into(root, "", reflect.ValueOf(&s).Elem())
	}
	f := r.file(s, kinds)
	if err := r.failure(); err != nil {
		return nil, err
	}
	return f, nil
}

// lineOf matches the position in an error of the parser.
var lineOf = regexp.MustCompile(`^yaml: line ([0-9]+): `)

// parse returns the root node of the only document, or nil if there is none.
func (r *reader) parse(data []byte) *yaml.Node {
	if len(data) > maxFile {
		r.wrong(nil, "", "has more than %d bytes", maxFile)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := d.Decode(&document)
	if err == nil {
		if err = d.Decode(&second); err == nil {
			r.wrong(&second, "", "the file has a second document")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		text, at := err.Error(), &yaml.Node{}
		if found := lineOf.FindStringSubmatch(text); found != nil {
			at.Line, _ = strconv.Atoi(found[1])
			text = text[len(found[0]):]
		}
		r.wrong(at, "", "%s", text)
		return nil
	}
	if len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

// Provider returns a provider of all leases of the file. It opens its own stores, separate from the
// store of Node.
func (f *File) Provider() (*leaseconfig.Provider, error) {
	return leaseconfig.NewProvider(f.leases, f.kinds.Leases)
}

// Replicator returns a section of replicators. The error matches ErrInvalid if no section has that
// name; the same holds for the other sections.
func (f *File) Replicator(name string) (Replicator, error) {
	return of(f.replicators, "replicators", name)
}

// Singleton returns a section of singletons.
func (f *File) Singleton(name string) (singleton.Config, error) {
	return of(f.singletons, "singletons", name)
}

// Sharding returns a section of sharding, by the type of its entities.
func (f *File) Sharding(entities string) (sharding.Config, error) {
	return of(f.sharding, "sharding", entities)
}

func of[T any](all map[string]T, section, name string) (T, error) {
	one, ok := all[name]
	if !ok {
		return one, fmt.Errorf("%w: no %q in section %s, only %q", ErrInvalid, name, section,
			slices.Sorted(maps.Keys(all)))
	}
	return one, nil
}

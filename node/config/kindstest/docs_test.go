package kindstest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/postgres"
	"github.com/concord-go/concord/coordination/zookeeper"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	providersetcd "github.com/concord-go/concord/node/provider/etcd"
	providerskubernetes "github.com/concord-go/concord/node/provider/kubernetes"
	providerszookeeper "github.com/concord-go/concord/node/provider/zookeeper"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

var write = flag.Bool("write", false, "write the tables of docs/configuration.md")

const page = "../../../docs/configuration.md"

// tables lists the sections of the page, with the types decoded for them.
var tables = []struct {
	section string
	of      reflect.Type
}{
	{"node", reflect.TypeFor[node.RunConfig]()},
	{"leases", reflect.TypeFor[leaseconfig.Section]()},
	{"replicators", reflect.TypeFor[distributeddata.Config]()},
	{"singletons", reflect.TypeFor[singleton.Config]()},
	{"sharding", reflect.TypeFor[sharding.Config]()},
	{"provider automanaged", reflect.TypeFor[automanaged.Config]()},
	{"provider etcd", reflect.TypeFor[providersetcd.Settings]()},
	{"provider kubernetes", reflect.TypeFor[providerskubernetes.Config]()},
	{"provider zookeeper", reflect.TypeFor[providerszookeeper.Settings]()},
	{"lease-class file", reflect.TypeFor[file.Settings]()},
	{"lease-class etcd", reflect.TypeFor[etcd.Settings]()},
	{"lease-class postgres", reflect.TypeFor[postgres.Settings]()},
	{"lease-class kubernetes", reflect.TypeFor[kubernetes.Config]()},
	{"lease-class zookeeper", reflect.TypeFor[zookeeper.Settings]()},
	{"lease-class azureblob", reflect.TypeFor[azureblob.Settings]()},
	{"store bbolt", reflect.TypeFor[bbolt.Settings]()},
	{"store badger", reflect.TypeFor[badger.Settings]()},
}

// absent explains why a file cannot set a field, or what sets it instead.
var absent = map[string]string{
	"node.RunConfig.Provider":                "`provider`, with a `class`; see below",
	"node.RunConfig.Store":                   "`lease` names a section of `leases`, whose store is used",
	"node.RunConfig.Session":                 "the section that `lease` names has its settings",
	"node.RunConfig.Logger":                  "an object of the program",
	"node.RunConfig.System":                  "options of Proto.Actor are functions",
	"node.RunConfig.Options":                 "options of Proto.Actor are functions",
	"node.RunConfig.Remoting":                "options of Proto.Actor are functions",
	"node.RunConfig.Health":                  "an object of the program, which serves it",
	"coordination/leaseconfig.Section.Store": "`store`; see below",
	"coordination.Config.Meters":             "an object of the program",
	"node.RunConfig.Meters":                  "an object of the program",
	"singleton.Config.Meters":                "an object of the program",
	"coordination.Config.Clock":              "for tests",
	"coordination.Config.Logger":             "an object of the program",
	"distributeddata.Config.Name":            "the key of the section",
	"distributeddata.Config.Membership":      "made by `Node.Document` or `Provider.Document` while the program runs",
	"distributeddata.Config.Store":           "`store`, with a `class`; see below. `Replicator.OpenStore` opens it",
	"distributeddata.Config.Meters":          "an object of the program",
	"singleton.Config.Name":                  "the key of the section",
	"singleton.Config.StopMessage":           "a message, which is a Go value",
	"sharding.Config.Type":                   "the key of the section",
	"sharding.Config.StopMessage":            "a message, which is a Go value",
	"sharding.Config.Meters":                 "an object of the program",
	"sharding.Config.Strategy":               "a function",
	"sharding.Config.RememberStore":          "an object of the program",
	"sharding.Config.Extractor":              "a function",
	"provider/etcd.Config.Client":            "`endpoints`, `username`, `password` and `tls`; other options are functions",
	"provider/kubernetes.Config.Client":      "the configuration of the pod",
	"provider/zookeeper.Config.ACL":          "the default grants every user all permissions: restrict the network, or set it in the program",
	"provider/zookeeper.Config.Dial":         "`tls`; else a function",
	"coordination/zookeeper.Config.ACL":      "the default grants every user all permissions: restrict the network, or set it in the program",
	"coordination/zookeeper.Config.Dial":     "`tls`; else a function",
	"distributeddata/badger.Config.Key":      "`key-file`, so that no key is in the file",
	"distributeddata/badger.Config.Logger":   "an object of the program",
	"distributeddata/bbolt.Config.Logger":    "an object of the program",
}

// other lists defaults that differ in a file.
var other = map[string]string{
	"coordination.Config.Owner": "the host:port of the member in the section that node.lease names, else host:pid",
}

// named lists fields that are set by the key of their section.
var named = []string{"distributeddata.Config.Name", "singleton.Config.Name", "sharding.Config.Type"}

// TestDocs_EveryFieldIsThere checks that the page lists every field, either by its key or with the
// reason why it has none.
func TestDocs_EveryFieldIsThere(t *testing.T) {
	var text strings.Builder
	missing := maps.Clone(absent)
	for _, table := range tables {
		fmt.Fprintf(&text, "\n### %s\n\n| key | type | |\n|---|---|---|\n", table.section)
		rows(t, &text, "", table.of, missing)
	}
	fmt.Fprintf(&text, "\n### What a file cannot set\n\n| field | instead |\n|---|---|\n")
	for _, field := range slices.Sorted(maps.Keys(absent)) {
		fmt.Fprintf(&text, "| `%s` | %s |\n", field, absent[field])
	}
	require.Empty(t, slices.Collect(maps.Keys(missing)), "reasons for fields that do not exist")

	const begin, end = "<!-- tables: go test ./node/config/kindstest -run Docs -args -write -->\n",
		"\n<!-- end of tables -->"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok)
	got, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+text.String()+end+after), 0o644))
		return
	}
	require.Equal(t, text.String(), got, "run it with -args -write")
}

// rows writes a row for each field of a struct that a file can set, and removes the others from
// missing.
func rows(t *testing.T, to *strings.Builder, prefix string, of reflect.Type,
	missing map[string]string) {
	for f := range of.Fields() {
		name := short(of) + "." + f.Name
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported():
		case key == "-" || slices.Contains(named, name):
			if _, ok := absent[name]; !ok {
				t.Errorf("%s cannot be set by a file: say why in absent", name)
			}
			delete(missing, name)
		case option == "inline":
			rows(t, to, prefix, f.Type, missing)
		case key == "":
			t.Errorf("%s has no yaml tag: give it a key, or \"-\" and a reason", name)
		case inner(f.Type) != nil:
			rows(t, to, prefix+key+".", inner(f.Type), missing)
		default:
			fmt.Fprintf(to, "| `%s%s` | %s | %s |\n", prefix, key, kind(f.Type),
				first(t, of, f.Name))
		}
	}
}

// inner returns the struct that is a field's type, or nil.
func inner(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func kind(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.String || t == reflect.TypeFor[node.OnSplit]():
		return "text"
	case t.Kind() == reflect.Bool:
		return "true, false"
	}
	return "number"
}

const module = "github.com/concord-go/concord/"

func short(t reflect.Type) string {
	return strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), module), "node/") + "." + t.Name()
}

// sources holds the comments of the parsed packages.
var sources = map[string]map[string]string{}

// first returns the first sentence of a field's comment, and its sentences about the default.
func first(t *testing.T, of reflect.Type, field string) string {
	dir := "../../../" + strings.TrimPrefix(of.PkgPath(), module)
	if sources[dir] == nil {
		sources[dir] = comments(t, dir)
	}
	text := strings.Join(strings.Fields(sources[dir][of.Name()+"."+field]), " ")
	sentences := strings.SplitAfter(text, ". ")
	out := strings.TrimSpace(sentences[0])
	if instead, ok := other[short(of)+"."+field]; ok {
		return out + " Default in a file: " + instead + "."
	}
	for _, s := range sentences[1:] {
		if strings.HasPrefix(s, "Default") || strings.HasPrefix(s, "Required") {
			out += " " + strings.TrimSpace(s)
		}
	}
	return strings.ReplaceAll(out, "|", `\|`)
}

// comments returns the comments of the fields of all structs in a directory.
func comments(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path.Join(dir, e.Name()), nil,
			parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				fieldsOf(spec.Name.Name, s, out)
			}
			return false
		})
	}
	return out
}

// fieldsOf collects the comments of a struct's fields; a field without a comment shares that of the
// field before it.
func fieldsOf(name string, s *ast.StructType, out map[string]string) {
	text := ""
	for _, f := range s.Fields.List {
		if f.Doc != nil {
			text = f.Doc.Text()
		}
		for _, n := range f.Names {
			out[name+"."+n.Name] = text
		}
	}
}
